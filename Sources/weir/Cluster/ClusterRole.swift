import Commands
import Configuration

/// A stage as a process of its own, on a log in Kafka.
enum ClusterRole: String, Sendable, CaseIterable {
    case gateway, ingest, ordering, fanout

    /// What it does, for help.
    var summary: String {
        switch self {
        case .gateway: "Take requests of devices: uploads to Kafka, pulls from the fan-outs."
        case .ingest: "Check uploads and append them to changes."
        case .ordering: "Give changes their order, publish it and write the tables in Postgres."
        case .fanout: "Keep the streams that devices pull, and serve them to the gateways."
        }
    }

    /// The scopes of settings that it reads.
    var scopes: [String] {
        let own =
            switch self {
            case .gateway: ["gateway", "limits"]
            case .ingest: ["ingest", "limits"]
            case .ordering: ["ordering", "postgres"]
            case .fanout: ["fanout", "postgres"]
            }
        return ClusterSettings.sharedScopes + own
    }

    /// Whether it needs the tables.
    var usesTables: Bool { self == .ordering || self == .fanout }

    /// The flags of its command.
    var options: [CommandOption] {
        let own =
            switch self {
            case .gateway: ["address", "auth"]
            case .ingest, .ordering: [String]()
            case .fanout: ["data"]
            }
        return Settings.options(of: scopes, and: ["config", "log-format"] + own)
    }
}

extension Settings {
    /// The flags of some scopes, and of some keys and short names.
    static func options(of scopes: [String], and names: [String]) -> [CommandOption] {
        schema.options.filter { option in
            names.contains(option.name) || scopes.contains { !$0.isEmpty && option.name.hasPrefix($0 + ".") }
        }
    }
}
