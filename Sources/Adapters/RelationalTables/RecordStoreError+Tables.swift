import RecordStore
import SyncModel
import SyncWire
import ThreadExecutor

extension RecordStoreError {
    /// A failure that is not of the database itself.
    ///
    /// - Parameter database: the database, for messages; without a password.
    package init(other error: any Error, database: String) {
        switch error {
        case let error as RecordStoreError:
            self = error
        case PoolUnavailable.closed:
            self.init(.closed, message: "the store is closed")
        case let error as PoolUnavailable:
            self.init(.unavailable, message: "\(database): \(error)", isRetriable: true)
        case is CancellationError:
            self.init(.unavailable, message: "the caller was cancelled while it waited", isRetriable: true)
        case let error as WireError where error.isNewerFormat:
            self.init(
                .incompatibleTables,
                message: "\(database): the tables hold values of a newer Weir; run that version (\(error))")
        case let error as WireError:
            self.init(.corrupt, message: "\(database): the tables hold a damaged value: \(error)")
        default:
            self.init(.unavailable, message: "\(database): \(error)")
        }
    }

    /// The tables do not fit the schema or the log.
    package static func incompatible(_ message: String, database: String) -> RecordStoreError {
        RecordStoreError(.incompatibleTables, message: "\(database): \(message)")
    }

    /// A step's partition is not at the expected position.
    package static func fenced(_ step: StoreStep, found: StoredPosition?, database: String) -> RecordStoreError {
        func text(_ position: StoredPosition?) -> String {
            guard let position else { return "no position" }
            return "changes offset \(position.state.nextOffset), ordered offset \(position.orderedOffset)"
        }
        return RecordStoreError(
            .fenced,
            message:
                "\(database): partition \(step.partition) is at \(text(found)), expected \(text(step.expected)): another "
                + "worker has written it")
    }

    /// Names the row, never a value.
    package static func refusedRow(_ key: RowKey, table: String, reason: String) -> RecordStoreError {
        RecordStoreError(
            .refusedRow(key),
            message: "table \(table) rejected the row with sync_id \(key.owner) and id \(key.id): \(reason)")
    }

    package static func corrupt(_ message: String) -> RecordStoreError { RecordStoreError(.corrupt, message: message) }
}
