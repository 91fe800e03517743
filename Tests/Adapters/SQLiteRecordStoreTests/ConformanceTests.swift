import RecordStoreConformance
import SQLiteRecordStore
import Testing

struct ConformanceTests {
    @Test(arguments: RecordStoreConformance.cases)
    func conforms(_ test: ConformanceCase) async throws {
        try await withTemporaryFolder { folder in
            try await test.run { try await SQLiteRecordStore.open(.init(path: folder + "/tables.db")) }
        }
    }
}
