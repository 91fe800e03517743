import Glibc
import RecordStore
import RelationalTables
import SQLite

extension RecordStoreError {
    /// - Parameter database: the file.
    init(_ error: any Error, database: String) {
        switch error {
        case let error as SQLiteError:
            self.init(error)
        case let error as RollbackFailure:
            let cause = RecordStoreError(error.cause, database: database)
            let rollback = RecordStoreError(error.rollback)
            self.init(
                rollback.code, message: "\(cause.message); then the rollback failed: \(rollback.message)")
        default:
            self.init(other: error, database: database)
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
            let isTransient = error.isBusy || error.isInputOutput || error.code == .outOfMemory
            self.init(.unavailable, message: message, isRetriable: isTransient)
        }
    }
}
