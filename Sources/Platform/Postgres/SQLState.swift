/// An error code of Postgres: five characters, the first two its class (Postgres manual, appendix A).
package struct SQLState: Sendable, Hashable, CustomStringConvertible {
    package let code: String

    package init(_ code: String) { self.code = code }

    package var description: String { code }

    /// The class, `class` being a keyword.
    package var category: String { String(code.prefix(2)) }

    package static let divisionByZero = SQLState("22012")
    /// The server, such as a standby, or the session is read-only.
    package static let readOnlyTransaction = SQLState("25006")
    package static let insufficientPrivilege = SQLState("42501")
    package static let uniqueViolation = SQLState("23505")
    package static let diskFull = SQLState("53100")
    /// `lock_timeout` expired.
    package static let lockNotAvailable = SQLState("55P03")
    /// By a timeout, a user, or a recovery conflict on a standby.
    package static let queryCanceled = SQLState("57014")
    /// The server shuts down, or an administrator terminated the session.
    package static let adminShutdown = SQLState("57P01")
    package static let dataCorrupted = SQLState("XX001")
    package static let indexCorrupted = SQLState("XX002")
}
