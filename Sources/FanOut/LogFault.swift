/// A record of `ordered` that cannot be applied: the stream stays where it is, and is tried again after a while.
///
/// What the file holds is still a point of each owner's order, so pulls go on.
enum LogFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The record is not what the contract of `ordered` says.
    case invalidRecord(String)
    /// The record is of another history.
    case otherEpoch(String)
    /// The rows are written in a schema version that this process does not know yet.
    case unknownSchema(String)

    var description: String {
        switch self {
        case .invalidRecord(let what): "a record of ordered breaks its contract: \(what)"
        case .otherEpoch(let epoch): "a record of ordered belongs to another history, \(epoch)"
        case .unknownSchema(let hash): "schema version \(hash) is not known here yet"
        }
    }
}
