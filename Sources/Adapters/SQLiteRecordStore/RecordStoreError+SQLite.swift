import Glibc
import RecordStore
import SQLite
import SyncWire

extension RecordStoreError {
    /// What a failure below the store means for its callers.
    init(_ error: any Error) {
        switch error {
        case let error as RecordStoreError:
            self = error
        case let error as SQLiteError:
            self.init(error)
        case let error as RollbackFailure:
            let rollback = RecordStoreError(error.rollback)
            self.init(
                rollback.code,
                message: "\(RecordStoreError(error.cause).message); then the roll-back failed: \(rollback.message)")
        case PoolUnavailable.closed:
            self.init(.closed, message: "the store is closed")
        case let error as PoolUnavailable:
            self.init(.unavailable, message: "\(error)", isRetriable: true)
        case is CancellationError:
            self.init(.unavailable, message: "the caller was cancelled while it waited", isRetriable: true)
        case let error as WireError where error.isNewerFormat:
            self.init(
                .incompatibleTables, message: "the file holds records of a newer Weir; run that version (\(error))")
        case let error as WireError:
            self.init(.corrupt, message: "the file holds a damaged record: \(error)")
        default:
            self.init(.unavailable, message: "\(error)")
        }
    }

    private init(_ error: SQLiteError) {
        let message = "\(error)"
        let isDiskFull = error.systemError == ENOSPC || error.systemError == EDQUOT
        if error.isFull || isDiskFull {
            self.init(.storageFull, message: message, isRetriable: true)
        } else if error.isReadOnly {
            self.init(.readOnly, message: message)
        } else if error.isCorrupt || error.code == .mismatch {
            self.init(.corrupt, message: message)
        } else {
            let mayPass = error.isBusy || error.isInputOutput || error.code == .outOfMemory
            self.init(.unavailable, message: message, isRetriable: mayPass)
        }
    }
}
