/// A database took no more work; nothing was begun.
package enum DatabaseUnavailable: Error, Equatable, CustomStringConvertible {
    /// So many calls are in it or wait already; try again later.
    case overloaded(limit: Int)
    /// It is closing or closed.
    case closed

    /// The reason in words.
    package var description: String {
        switch self {
        case .overloaded(let limit): "\(limit) calls are in the database or wait for it already"
        case .closed: "the database is closed"
        }
    }
}
