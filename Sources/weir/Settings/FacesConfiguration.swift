import Configuration
import CrudFace
import FanOut
import Gateway
import RestFace
import SQLiteNowFace
import TrackerFace

/// The protocols that a gateway speaks beside the client contract (docs/faces).
struct FacesConfiguration: ConfigurationComponent {
    enum Name: String, Sendable, CaseIterable {
        case crud
        case rest
        case sqlitenow
        case tracker
    }

    private var names: [String] = []
    private(set) var enabled: [Name] = []
    /// Empty: any.
    private var schemaName = ""

    static var settings: [Setting<Self>] {
        Setting(
            "faces", \.names, .list(counts: 0...Name.allCases.count),
            "Other protocols that gateways speak (docs/faces): \(Name.allCases.map(\.rawValue).joined(separator: ", ")). "
                + "Set the same for fan-outs, whose streams get the indexes that they need.")
        Setting(
            "sqlitenow.schema", \.schemaName, .string(lengths: 0...256),
            "Name of the schema that clients of the face sqlitenow must give; empty: it is not looked at.")
    }

    mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        for name in names {
            guard let face = Name(rawValue: name) else {
                throw context.problem(with: \.names, "\"\(name)\" is no face")
            }
            guard !enabled.contains(face) else { throw context.problem(with: \.names, "has \(name) twice") }
            enabled.append(face)
        }
    }

    var faces: GatewayFaces { GatewayFaces(enabled.map(face)) }

    private func face(_ name: Name) -> any Face {
        switch name {
        case .crud: CrudFace()
        case .rest: RestFace()
        case .sqlitenow: SQLiteNowFace(schemaName: schemaName.isEmpty ? nil : schemaName)
        case .tracker: TrackerFace()
        }
    }

    /// The fan-out's settings with what the faces need of streams.
    func applied(to fanOut: FanOutConfiguration) -> FanOutConfiguration {
        var fanOut = fanOut
        fanOut.rowIndexes = !enabled.isEmpty
        return fanOut
    }
}
