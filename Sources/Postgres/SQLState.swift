/// Postgres's code of an error: five characters, the first two its class (Postgres manual, appendix A).
public struct SQLState: Sendable, Hashable, CustomStringConvertible {
    /// The code as Postgres spells it.
    public let code: String

    /// Wraps a code.
    public init(_ code: String) {
        self.code = code
    }

    /// The code itself.
    public var description: String { code }

    /// The class: what the first two characters say.
    public var category: String { String(code.prefix(2)) }

    /// A division by zero.
    public static let divisionByZero = SQLState("22012")
    /// The server or the session takes no writes, as a standby does.
    public static let readOnlyTransaction = SQLState("25006")
    /// Two transactions waited for each other.
    public static let deadlockDetected = SQLState("40P01")
    /// A statement needed a newer state than its transaction sees.
    public static let serializationFailure = SQLState("40001")
    /// The role may not do this.
    public static let insufficientPrivilege = SQLState("42501")
    /// A row with this key exists.
    public static let uniqueViolation = SQLState("23505")
    /// The disk is full.
    public static let diskFull = SQLState("53100")
    /// A lock was not had in time (`lock_timeout`).
    public static let lockNotAvailable = SQLState("55P03")
    /// A statement was cancelled: by a time-out, a user, or a standby that had to go on.
    public static let queryCanceled = SQLState("57014")
    /// The server shuts down, or an administrator ended this session.
    public static let adminShutdown = SQLState("57P01")
    /// The server starts, stops or recovers and takes no session yet.
    public static let cannotConnectNow = SQLState("57P03")
    /// A file is damaged.
    public static let dataCorrupted = SQLState("XX001")
    /// An index is damaged.
    public static let indexCorrupted = SQLState("XX002")
}
