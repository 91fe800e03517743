import Commands
import Configuration
import NetworkLink

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
            case .gateway: ["gateway", "limits", "link"]
            case .ingest: ["ingest", "limits"]
            case .ordering: ["ordering", "postgres"]
            case .fanout: ["fanout", "link", "postgres"]
            }
        return ClusterSettings.sharedScopes + own
    }

    /// The flags of its command.
    var options: [CommandOption] {
        let plain = ["config", "log-format"] + (self == .gateway ? ["address"] : []) + ownKeys
        return Settings.options(of: scopes, and: plain).filter { !otherEnd.contains($0.name) }
    }

    /// Whether it reads a setting.
    func reads(_ key: String) -> Bool {
        ownKeys.contains(key)
            || scopes.contains { key.hasPrefix($0 + ".") } && !otherEnd.contains(key)
    }

    /// The keys without a scope that it reads.
    private var ownKeys: [String] {
        switch self {
        case .gateway: ["auth"]
        case .ingest, .ordering: []
        case .fanout: ["data"]
        }
    }

    /// The settings of the link's other end.
    private var otherEnd: Set<String> {
        let keys: [any DeclaredConfigurationKey] =
            switch self {
            case .gateway: FanOutServerConfiguration.keys
            case .fanout: RemoteFanOutConfiguration.keys
            case .ingest, .ordering: []
            }
        return Set(keys.map { "link." + $0.declaration.name })
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
