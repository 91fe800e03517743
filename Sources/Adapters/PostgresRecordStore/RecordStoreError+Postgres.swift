import Postgres
import RecordStore
import SyncWire
import ThreadExecutor

extension RecordStoreError {
    /// What a failure below the store means for its callers.
    ///
    /// - Parameter place: the database, for messages; without a password.
    init(_ error: any Error, place: String) {
        switch error {
        case let error as RecordStoreError:
            self = error
        case let error as PostgresError:
            self.init(error, place: place)
        case PoolUnavailable.closed:
            self.init(.closed, message: "the store is closed")
        case let error as PoolUnavailable:
            self.init(.unavailable, message: "\(place): \(error)", isRetriable: true)
        case is CancellationError:
            self.init(.unavailable, message: "the caller was cancelled while it waited", isRetriable: true)
        case let error as WireError where error.isNewerFormat:
            self.init(
                .incompatibleTables,
                message: "\(place): the tables hold records of a newer Weir; run that version (\(error))")
        case let error as WireError:
            self.init(.corrupt, message: "\(place): the tables hold a damaged record: \(error)")
        default:
            self.init(.unavailable, message: "\(place): \(error)")
        }
    }

    private init(_ error: PostgresError, place: String) {
        // Where the data is bad Postgres may quote a value.
        let hidesMessage = error.sqlState?.category == "22" && error.sqlState != .divisionByZero
        var message = "\(place): \(hidesMessage ? error.withoutMessage : error.description)"
        if error.sqlState?.category == "28" {
            message +=
                "; look at the user in postgres.shards, at postgres.password-file and at the server's pg_hba.conf"
        }
        let code: Code
        switch error.sqlState {
        case .diskFull: code = .storageFull
        case .readOnlyTransaction: code = .readOnly
        case .dataCorrupted, .indexCorrupted: code = .corrupt
        case let state? where state.category == "42" || state.category == "3F": code = .incompatibleTables
        default: code = .unavailable
        }
        self.init(code, message: message, isRetriable: error.isRetriable)
    }
}
