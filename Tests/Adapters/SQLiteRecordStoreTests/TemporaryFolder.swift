import Foundation
import RecordStore
import SQLite
import SQLiteRecordStore
import SyncModel

/// Makes an empty folder for a closure and removes it afterwards.
func withTemporaryFolder<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("weir-store-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let outcome: Result<Value, any Error>
    do {
        outcome = .success(try await body(folder.path))
    } catch {
        outcome = .failure(error)
    }
    try FileManager.default.removeItem(at: folder)
    return try outcome.get()
}

extension SQLiteRecordStore {
    /// Prepares for the one history of these tests.
    func prepare(_ schemas: SchemaHistory) async throws(RecordStoreError) {
        try await prepare(schemas, epoch: "00112233445566778899aabbccddeeff")
    }
}

/// Opens a store for a closure and closes it afterwards.
func withStore<Value>(
    _ configuration: SQLiteRecordStoreConfiguration, _ body: (SQLiteRecordStore) async throws -> Value
) async throws -> Value {
    let store = try await SQLiteRecordStore.open(configuration)
    let outcome: Result<Value, any Error>
    do {
        outcome = .success(try await body(store))
    } catch {
        outcome = .failure(error)
    }
    await store.close()
    return try outcome.get()
}

/// Runs SQL on a file as another application would.
func execute(_ sql: String, path: String, journal: WriteOptions.Journal = .wal) async throws {
    let writer = try await DatabaseWriter.open(path: path, write: WriteOptions(journal: journal))
    let outcome: Result<Void, any Error>
    do {
        try await writer.perform { connection in try connection.execute(sql) }
        outcome = .success(())
    } catch {
        outcome = .failure(error)
    }
    try await writer.close()
    try outcome.get()
}
