import Foundation
import OwnerFileStore
import OwnerFileStoreConformance
import Postgres
import PostgresOwnerFileStore
import PostgresRecordStore
import PostgresServer
import SyncModel
import Testing

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct PostgresOwnerFileStoreTests {
    @Test(arguments: OwnerFileStoreConformance.cases)
    func conforms(_ test: ConformanceCase) async throws {
        try await test.run(open(try await prepared()))
    }

    @Test func explainsThatTheTablesAreMissing() async throws {
        let store = try await open(try await configuration())
        let error = await #expect(throws: OwnerFileError.self) {
            try await store.file(of: OwnerFileStoreConformance.ann)
        }
        #expect(error?.message.contains("weir_owner_files") == true)
        await store.close()
    }

    @Test func anUnreachableServerIsAnErrorOfEachCall() async throws {
        var parameters = try ConnectionParameters("host=127.0.0.1 port=1 dbname=weir user=weir")
        parameters["connect_timeout"] = "2"
        let store = try await open(PostgresRecordStoreConfiguration(shards: [parameters]))
        let error = await #expect(throws: OwnerFileError.self) {
            try await store.file(of: OwnerFileStoreConformance.ann)
        }
        #expect(error?.code == .unavailable)
        await store.close()
    }

    @Test func aFileOfAnotherHistoryIsNoneAndIsReplacedByAnOlderOne() async throws {
        let configuration = try await prepared()
        let first = try await open(configuration)
        let second = try await open(configuration, epoch: "e2")
        _ = try await OwnerFileStoreConformance.put([1], "phone", 5, first)
        #expect(try await second.file(of: OwnerFileStoreConformance.ann) == nil)
        let file = try await OwnerFileStoreConformance.put([2], "phone", 4, second)
        #expect(try await second.file(of: OwnerFileStoreConformance.ann) == file)
        await first.close()
        await second.close()
    }

    /// Two gateways at once: the newest file stays, no chunk of another one is left, and the room is free again.
    @Test func gatewaysReplaceAFileAtOnce() async throws {
        let configuration = try await prepared()
        let stores = [try await open(configuration), try await open(configuration)]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, store) in stores.enumerated() {
                group.addTask {
                    for round in 0..<20 {
                        let newest = TimeStamp(Int64(round * 2 + number))
                        let device = Device(
                            caller: OwnerFileStoreConformance.ann, knowledgeID: KnowledgeID(unchecked: "k\(number)"))
                        let upload = try await store.begin(device, byteCount: 4)
                        let chunk = [UInt8](repeating: UInt8(newest.rawValue), count: 4)
                        try await store.append(chunk, number: 0, to: upload)
                        _ = try await store.commit(upload, newest: newest, digest: [UInt8](repeating: 0, count: 32))
                        try await store.collect(idleFor: 3600)
                    }
                }
            }
            try await group.waitForAll()
        }
        let file = try #require(try await stores[0].file(of: OwnerFileStoreConformance.ann))
        #expect(file.newest == TimeStamp(39))
        #expect(try await OwnerFileStoreConformance.read(file, stores[1]) == [39, 39, 39, 39])
        try await stores[0].collect(idleFor: 3600)
        let device = Device(caller: SyncID(unchecked: "ben"), knowledgeID: KnowledgeID(unchecked: "k"))
        _ = try await stores[0].begin(device, byteCount: OwnerFileStoreConformance.limits.totalBytes - 4)
        for store in stores { await store.close() }
    }

    /// The rights that docs/operations.md gives a gateway's user are enough.
    @Test func needsNoRightButOnItsOwnTables() async throws {
        var configuration = try await prepared()
        let role = "gateway_" + UUID().uuidString.lowercased().prefix(8)
        let tables = configuration.ownerFileTables
        let names = [tables.files, tables.uploads, tables.chunks, tables.usage].joined(separator: ", ")
        let pool = try await PostgresPool.start(configuration.shards[0], count: 1)
        try await pool.perform {
            try $0.execute(
                """
                CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA \(tables.files.split(separator: ".")[0]) TO \(role);
                GRANT SELECT, INSERT, UPDATE, DELETE ON \(names) TO \(role)
                """)
        }
        configuration.shards[0]["user"] = role
        for test in OwnerFileStoreConformance.cases {
            try await test.run(open(configuration))
            try await pool.perform { connection in
                for name in [tables.files, tables.uploads, tables.chunks, tables.usage] {
                    try connection.execute("DELETE FROM \(name)")
                }
            }
        }
        await pool.close()
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

    private func prepared() async throws -> PostgresRecordStoreConfiguration {
        let configuration = try await configuration()
        let store = try await PostgresRecordStore.open(configuration)
        try await store.prepare(SchemaHistory(), epoch: "e1")
        await store.close()
        return configuration
    }

    private func open(
        _ configuration: PostgresRecordStoreConfiguration, epoch: String = "e1"
    ) async throws -> PostgresOwnerFileStore {
        try await .open(configuration, epoch: epoch, partitions: 4, limits: OwnerFileStoreConformance.limits)
    }
}
