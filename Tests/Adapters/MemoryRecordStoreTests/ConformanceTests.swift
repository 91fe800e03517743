import MemoryRecordStore
import RecordStoreConformance
import Testing

struct ConformanceTests {
    @Test(arguments: RecordStoreConformance.cases)
    func conforms(_ test: ConformanceCase) async throws {
        let tables = MemoryTables()
        try await test.run { MemoryRecordStore(tables) }
    }
}
