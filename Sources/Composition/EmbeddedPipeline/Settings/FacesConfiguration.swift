import Configuration
import CrudFace
import FanOut
import Gateway
import OwnerFileStore
import RestFace
import SQLiteNowFace
import TrackerFace

/// The protocols that a gateway speaks beside the client contract (docs/faces).
package struct FacesConfiguration: ConfigurationComponent {
    package enum Name: String, Sendable, CaseIterable {
        case crud
        case rest
        case sqlitenow
        case tracker
    }

    private var names: [String] = []
    package private(set) var enabled: [Name] = []
    /// Empty: any.
    private var schemaName = ""
    private var fileBytes = 256 << 20
    private var totalFileBytes = 16 << 30

    package init() {}

    package static var settings: [Setting<Self>] {
        Setting(
            "faces", \.names, .list(counts: 0...Name.allCases.count),
            "Other protocols that gateways speak (docs/faces): \(Name.allCases.map(\.rawValue).joined(separator: ", ")). "
                + "Set the same for fan-outs, whose streams get the indexes that they need.")
        Setting(
            "sqlitenow.schema", \.schemaName, .string(lengths: 0...256),
            "Name of the schema that clients of the face sqlitenow must give; empty: it is not looked at.")
        Setting(
            "tracker.file-bytes", \.fileBytes, .byteSize(in: 0...(1 << 40)),
            "Size of a database file that a device of the face tracker may store; 0: no files are kept.")
        Setting(
            "tracker.total-file-bytes", \.totalFileBytes, .byteSize(in: 0...(1 << 50)),
            "Size of the database files of all owners, uploads included, in the data folder or in each database of Postgres; beyond it uploads get 503."
        )
    }

    package mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        for name in names {
            guard let face = Name(rawValue: name) else {
                throw context.problem(with: \.names, "\"\(name)\" is no face")
            }
            guard !enabled.contains(face) else { throw context.problem(with: \.names, "has \(name) twice") }
            enabled.append(face)
        }
    }

    package var faces: GatewayFaces { GatewayFaces(enabled.map(face), maximumFileBytes: fileBytes) }

    /// `nil` where no files are kept.
    package var files: OwnerFileLimits? {
        enabled.contains(.tracker) && fileBytes > 0 ? OwnerFileLimits(totalBytes: totalFileBytes) : nil
    }

    private func face(_ name: Name) -> any Face {
        switch name {
        case .crud: CrudFace()
        case .rest: RestFace()
        case .sqlitenow: SQLiteNowFace(schemaName: schemaName.isEmpty ? nil : schemaName)
        case .tracker: TrackerFace()
        }
    }

    /// The fan-out's settings with what the faces need of streams.
    package func applied(to fanOut: FanOutConfiguration) -> FanOutConfiguration {
        var fanOut = fanOut
        fanOut.rowIndexes = !enabled.isEmpty
        return fanOut
    }
}
