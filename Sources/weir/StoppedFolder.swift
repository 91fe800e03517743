import AsyncPrimitives
import ChangeLog
import Control
import RecordStore
import SQLiteChangeLog
import SQLiteRecordStore
import SyncModel

/// A data folder whose process has stopped, for commands that work on its log: locked, so that no process starts
/// meanwhile.
struct StoppedFolder: Sendable {
    private let folder: DataFolder
    let log: SQLiteChangeLog
    let control: ControlTopic
    private let settings: OfflineSettings

    /// Opens the log for a body, and closes it afterwards.
    static func with<Value: Sendable>(
        _ settings: OfflineSettings, _ body: (StoppedFolder) async throws -> Value
    ) async throws -> Value {
        let folder = try DataFolder(existing: settings.data)
        let log = try await SQLiteChangeLog(settings.changeLog)
        let result = await Result.capturing {
            let control = try await ControlTopic.existing(in: log)
            return try await body(StoppedFolder(folder: folder, log: log, control: control, settings: settings))
        }
        try await log.close()
        return try result.get()
    }

    /// Opens tables of the log's history for a body, and closes them afterwards.
    func withTables<Value: Sendable>(
        at path: String, _ body: (SQLiteRecordStore) async throws -> Value
    ) async throws -> Value {
        var configuration = settings.store
        configuration.path = path
        let store = try await SQLiteRecordStore.open(configuration)
        let result = await Result.capturing {
            try await store.prepare(control.schemas, epoch: control.history.epoch)
            return try await body(store)
        }
        await store.close()
        return try result.get()
    }
}
