import SyncModel

/// A record of `ordered` that cannot be applied: the stream keeps its position and retries after a pause, or when the schema
/// version that it lacks is known.
///
/// What the file holds is still a point of each owner's order, so pulls continue.
enum LogFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The record is not what the contract of `ordered` says.
    case invalidRecord(String)
    /// The record has a different epoch.
    case otherEpoch(String)
    /// The rows are written in a schema version, named by its hash, that this process does not know yet.
    case unknownSchema(String)
    /// The tables have reached a schema version that this process does not know yet.
    case unknownSchemaNumber(Int)

    var description: String {
        switch self {
        case .invalidRecord(let what): "a record of ordered breaks its contract: \(what)"
        case .otherEpoch(let epoch): "a record of ordered has a different epoch, \(epoch)"
        case .unknownSchema(let hash): "schema version \(hash) is not known here yet"
        case .unknownSchemaNumber(let number): "schema version \(number) is not known here yet"
        }
    }

    /// What to wait for, where it is a schema version.
    var schemaAwaited: (@Sendable (SchemaHistory) -> Bool)? {
        switch self {
        case .invalidRecord, .otherEpoch: nil
        case .unknownSchema(let hash): { $0[hash] != nil }
        case .unknownSchemaNumber(let number): { $0[number] != nil }
        }
    }
}
