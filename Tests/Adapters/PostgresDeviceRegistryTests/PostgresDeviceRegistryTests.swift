import DeviceRegistry
import DeviceRegistryConformance
import Foundation
import Postgres
import PostgresDeviceRegistry
import PostgresRecordStore
import PostgresServer
import SyncModel
import Testing

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct PostgresDeviceRegistryTests {
    @Test(arguments: DeviceRegistryConformance.cases)
    func conforms(_ test: ConformanceCase) async throws {
        try await test.run(open(try await prepared()))
    }

    @Test func explainsThatTheTableIsMissingAndWorksOnceItIsMade() async throws {
        let configuration = try await configuration()
        let registry = try await open(configuration)
        let device = Device(caller: SyncID(unchecked: "abc"), knowledgeID: KnowledgeID(unchecked: "k1"))
        let error = await #expect(throws: DeviceRegistryError.self) {
            try await registry.record([.init(device, at: 1)])
        }
        #expect(error?.message.contains("weir_device_registry") == true)
        try await prepare(configuration)
        try await registry.record([DeviceSighting(device, at: 1)])
        #expect(try await registry.device(device)?.lastSeen == 1)
        await registry.close()
    }

    @Test func anUnreachableServerIsAnErrorOfEachCall() async throws {
        var parameters = try ConnectionParameters("host=127.0.0.1 port=1 dbname=weir user=weir")
        parameters["connect_timeout"] = "2"
        let registry = try await open(PostgresRecordStoreConfiguration(shards: [parameters]))
        let device = Device(caller: SyncID(unchecked: "abc"), knowledgeID: KnowledgeID(unchecked: "k1"))
        await #expect(throws: DeviceRegistryError.self) { try await registry.record([.init(device, at: 1)]) }
        await registry.close()
    }

    /// Two gateways that write the same devices in other orders wait for each other, and never in a circle.
    @Test func gatewaysWriteTheSameDevicesAtOnce() async throws {
        let configuration = try await prepared()
        let registries = [try await open(configuration), try await open(configuration)]
        let devices = (0..<500).map {
            Device(caller: SyncID(unchecked: "caller \($0 % 7)"), knowledgeID: KnowledgeID(unchecked: "k\($0 / 7 % 3)"))
        }
        let unique = Array(Set(devices))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, registry) in registries.enumerated() {
                for round in 0..<20 {
                    let order = (number + round) % 2 == 0 ? unique : unique.reversed()
                    group.addTask {
                        try await registry.record(order.map { DeviceSighting($0, at: Int64(round * 2 + number)) })
                    }
                }
            }
            try await group.waitForAll()
        }
        for device in unique { #expect(try await registries[0].device(device)?.lastSeen == 39) }
        for registry in registries { await registry.close() }
    }

    /// The rights that docs/operations.md gives a gateway's user are enough, and rows of the tables are out of its reach.
    @Test func needsNoRightButOnItsOwnTables() async throws {
        var configuration = try await prepared()
        let role = "gateway_" + UUID().uuidString.lowercased().prefix(8)
        let schema = configuration.deviceRegistryTable.split(separator: ".")[0]
        try await execute(
            """
            CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA \(schema) TO \(role);
            GRANT SELECT, INSERT, UPDATE, DELETE
            ON \(configuration.deviceRegistryTable), \(configuration.devicePositionsTable) TO \(role)
            """)
        configuration.shards[0]["user"] = role
        for test in DeviceRegistryConformance.cases {
            try await test.run(open(configuration))
            try await execute(
                "DELETE FROM \(configuration.deviceRegistryTable); DELETE FROM \(configuration.devicePositionsTable)")
        }
        let pool = try await PostgresPool.start(configuration.shards[0], count: 1)
        await #expect(throws: PostgresError.self) {
            try await pool.perform { try $0.execute("SELECT FROM \(schema).weir_devices") }
        }
        await pool.close()
    }

    private func execute(_ sql: String) async throws {
        let server = try await PostgresServer.shared()
        let parameters = try ConnectionParameters(server.connectionString(database: "postgres"))
        let pool = try await PostgresPool.start(parameters, count: 1)
        let outcome: Result<Void, any Error>
        do {
            try await pool.perform { try $0.execute(sql) }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await pool.close()
        try outcome.get()
    }

    /// A schema of its own on the shared server, without tables.
    private func configuration() async throws -> PostgresRecordStoreConfiguration {
        let server = try await PostgresServer.shared()
        let parameters = try ConnectionParameters(server.connectionString(database: "postgres"))
        var configuration = PostgresRecordStoreConfiguration(shards: [parameters])
        configuration.schema = "weir " + UUID().uuidString.lowercased().prefix(8)
        configuration.connections = 1
        return configuration
    }

    private func prepare(_ configuration: PostgresRecordStoreConfiguration) async throws {
        let store = try await PostgresRecordStore.open(configuration)
        try await store.prepare(SchemaHistory(), epoch: "e1")
        await store.close()
    }

    private func prepared() async throws -> PostgresRecordStoreConfiguration {
        let configuration = try await configuration()
        try await prepare(configuration)
        return configuration
    }

    private func open(_ configuration: PostgresRecordStoreConfiguration) async throws -> PostgresDeviceRegistry {
        try await .open(configuration, partitions: 4, maximumPerCaller: DeviceRegistryConformance.maximumPerCaller)
    }
}
