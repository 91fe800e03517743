import AsyncPrimitives
import Configuration
import Control
import EmbeddedPipeline
import SQLiteChangeLog
import SQLiteRecordStore
import SyncModel

/// A data folder whose process has stopped, for commands that work on its log: locked, so that no process starts
/// meanwhile.
struct StoppedFolder: Sendable {
    let log: SQLiteChangeLog
    let control: ControlTopic
    let settings: EmbeddedSettings
    private let folder: DataFolder

    /// Opens the log for a body, and closes it afterwards.
    static func with<Value: Sendable>(
        _ settings: EmbeddedSettings, _ body: (StoppedFolder) async throws -> Value
    ) async throws -> Value {
        let folder = try DataFolder(existing: settings.folder)
        let log = try await SQLiteChangeLog(settings.changeLog)
        let result = await Result.capturing {
            let control = try await ControlTopic.existing(in: log)
            return try await body(StoppedFolder(log: log, control: control, settings: settings, folder: folder))
        }
        try await log.close()
        return try result.get()
    }

    /// Opens tables of the log's history for a body, and closes them afterwards.
    func withTables<Value: Sendable>(
        at path: String, _ body: (SQLiteRecordStore) async throws -> Value
    ) async throws -> Value {
        try await SQLiteRecordStore.with(settings.store.with(\.path, path), control, body)
    }
}

extension SQLiteRecordStore {
    /// Opens and prepares tables for a body, and closes them afterwards.
    static func with<Value: Sendable>(
        _ configuration: SQLiteRecordStoreConfiguration, _ control: ControlTopic,
        _ body: (SQLiteRecordStore) async throws -> Value
    ) async throws -> Value {
        let tables = try await open(configuration)
        let result = await Result.capturing {
            try await tables.prepare(control.schemas, epoch: control.history.epoch)
            return try await body(tables)
        }
        await tables.close()
        return try result.get()
    }
}
