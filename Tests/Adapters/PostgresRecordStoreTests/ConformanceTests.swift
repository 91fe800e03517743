import PostgresRecordStore
import PostgresServer
import RecordStoreConformance
import Testing

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct ConformanceTests {
    @Test(arguments: RecordStoreConformance.cases)
    func conforms(_ test: ConformanceCase) async throws {
        let configuration = try await PostgresStoreHarness.make().configuration
        try await test.run { try await PostgresRecordStore.open(configuration) }
    }
}
