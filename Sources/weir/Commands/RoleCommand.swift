import Commands
import Configuration
import EmbeddedPipeline
import FanOut
import Gateway
import Ingest
import KafkaChangeLog
import NetworkLink
import Operations
import Ordering
import PostgresRecordStore
import ServiceLifecycle

extension Role {
    /// What it does, for help.
    fileprivate var summary: String {
        switch self {
        case .gateway: "Take requests of devices: uploads to Kafka, pulls from the fan-outs."
        case .ingest: "Check uploads and append them to changes."
        case .ordering: "Give changes their order, publish it and write the tables in Postgres."
        case .fanout: "Keep the streams that devices pull, and serve them to the gateways."
        }
    }

    /// What keeps a process of this role from being ready, besides its storage.
    fileprivate var conditions: [Condition] {
        switch self {
        case .gateway: [.history, .fanOuts, .gateway]
        case .ingest, .ordering: [.history, .stage(self)]
        case .fanout: [.history, .streams]
        }
    }
}

/// `weir gateway`, `ingest`, `ordering` and `fanout`: one role on Kafka and Postgres until SIGTERM or SIGINT.
enum RoleCommand {
    static let commands = Role.allCases.map { role in
        Command(
            role.rawValue, role.summary, Weir.Action { try await run(role, $0) },
            options: Settings.schema.options { _ = RoleSettings($0, role) },
            discussion: "One of any number of processes on one Kafka and one Postgres: see docs/operations.md.")
    }

    /// The settings that a role uses, and no others.
    struct RoleSettings: Sendable {
        enum Work: Sendable {
            case gateway(
                GatewayConfiguration, LimitsConfiguration, AuthenticationConfiguration, RemoteFanOutConfiguration,
                LinkConfiguration, FacesConfiguration)
            case ingest(IngestConfiguration)
            case ordering(OrderingConfiguration)
            case fanOut(FanOutConfiguration, FanOutServerConfiguration, LinkConfiguration)
        }

        let log: LogConfiguration
        let operations: OperationsConfiguration
        private(set) var cluster: ClusterSettings
        let work: Work

        init(_ reader: ConfigurationReader, _ role: Role) {
            log = reader.read()
            operations = reader.read()
            cluster = ClusterSettings(kafka: reader.read())
            switch role {
            case .gateway:
                let gateway = reader.read(GatewayConfiguration.self)
                let faces = reader.read(FacesConfiguration.self)
                work = .gateway(gateway, reader.read(), reader.read(), reader.read(), reader.read(), faces)
                cluster.files = faces.files
                cluster.devices = .init(postgres: reader.read(), gateway)
            case .ingest:
                work = .ingest(reader.read())
            case .ordering:
                work = .ordering(reader.read())
                cluster.postgres = reader.read(PostgresRecordStoreConfiguration.self)
            case .fanout:
                var fanOut = reader.read(FacesConfiguration.self).applied(to: reader.read())
                fanOut.directory = reader.read(\PipelineConfiguration.data)
                work = .fanOut(fanOut, reader.read(), reader.read())
                // Ordering or `weir migrate` makes the tables; a stream that must be rebuilt waits for that.
                cluster.postgres = reader.read(PostgresRecordStoreConfiguration.self).with(\.migratesAtStart, false)
                cluster.waitsForTables = false
            }
        }
    }

    private static func run(_ role: Role, _ invocation: Invocation) async throws -> ExitCode {
        let settings = try Settings.load(invocation) { RoleSettings($0, role) }.settings
        return await ServiceRunner.run(settings.log, settings.operations, conditions: role.conditions) { process in
            var folder: DataFolder?
            if case .fanOut(let fanOut, _, _) = settings.work { folder = try DataFolder(path: fanOut.directory) }
            try await process.serve { [logger = process.logger] condition in
                try await ClusterBackend.open(settings.cluster, condition: condition, logger: logger)
            } _: { services in
                switch settings.work {
                case .gateway(let gateway, let limits, let authentication, let remote, let link, let faces):
                    try services.gateway(gateway, limits, authentication, remote, link, faces.faces)
                case .ingest(let ingest): services.ingest(ingest)
                case .ordering(let ordering): services.ordering(ordering)
                case .fanOut(let fanOut, let server, let link): try services.fanOut(fanOut, server, link)
                }
            }
            withExtendedLifetime(folder) {}
        }
    }
}
