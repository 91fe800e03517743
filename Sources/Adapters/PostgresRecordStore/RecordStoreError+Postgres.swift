import Postgres
import RecordStore
import RelationalTables

extension RecordStoreError {
    /// - Parameter database: the database, for messages; without a password.
    init(_ error: any Error, database: String) {
        if let error = error as? PostgresError {
            self.init(error, database: database)
        } else {
            self.init(other: error, database: database)
        }
    }

    private init(_ error: PostgresError, database: String) {
        // Postgres may quote a value in an error of bad data.
        let hidesMessage = error.sqlState?.category == "22" && error.sqlState != .divisionByZero
        var message = "\(database): \(hidesMessage ? error.withoutMessage : error.description)"
        if error.sqlState?.category == "28" {
            message +=
                "; check the user in postgres.shards, postgres.password-file and the server's pg_hba.conf"
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
