/// Postgres's code of an error: five characters, the first two its class (Postgres manual, appendix A).
package struct SQLState: Sendable, Hashable, CustomStringConvertible {
    /// The code as Postgres spells it.
    package let code: String

    /// Wraps a code.
    package init(_ code: String) {
        self.code = code
    }

    /// The code itself.
    package var description: String { code }

    /// The class: what the first two characters say.
    package var category: String { String(code.prefix(2)) }

    /// A division by zero.
    package static let divisionByZero = SQLState("22012")
    /// The server or the session takes no writes, as a standby does.
    package static let readOnlyTransaction = SQLState("25006")
    /// Two transactions waited for each other.
    package static let deadlockDetected = SQLState("40P01")
    /// A statement needed a newer state than its transaction sees.
    package static let serializationFailure = SQLState("40001")
    /// The role may not do this.
    package static let insufficientPrivilege = SQLState("42501")
    /// A row with this key exists.
    package static let uniqueViolation = SQLState("23505")
    /// The disk is full.
    package static let diskFull = SQLState("53100")
    /// A lock was not had in time (`lock_timeout`).
    package static let lockNotAvailable = SQLState("55P03")
    /// A statement was cancelled: by a time-out, a user, or a standby that had to go on.
    package static let queryCanceled = SQLState("57014")
    /// The server shuts down, or an administrator ended this session.
    package static let adminShutdown = SQLState("57P01")
    /// The server starts, stops or recovers and takes no session yet.
    package static let cannotConnectNow = SQLState("57P03")
    /// A file is damaged.
    package static let dataCorrupted = SQLState("XX001")
    /// An index is damaged.
    package static let indexCorrupted = SQLState("XX002")
}
