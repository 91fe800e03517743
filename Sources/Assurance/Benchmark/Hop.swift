/// The places that a change goes through, told by the code that runs.
enum Hop: String, Sendable, CaseIterable {
    /// Serving connections.
    case http
    /// Looking into requests and spelling answers.
    case gateway
    /// Appending to `uploads`, `changes` and `ordered`, and reading them.
    case log
    /// Checking changes and bringing values to their canonical form.
    case ingest
    /// Deciding what becomes of each change.
    case ordering
    /// Looking rows up and writing the tables.
    case store
    /// Writing and reading the streams.
    case fanOut = "fanout"
    case other

    /// The stages' modules, by which the names of their functions begin.
    private static let modules: [(prefix: String, hop: Hop)] = [
        ("$s4HTTP", .http), ("$s7Gateway", .gateway), ("$s15SQLiteChangeLog", .log), ("$s8LocalLog", .log),
        ("$s14KafkaChangeLog", .log), ("$s5Kafka", .log), ("$s19PostgresRecordStore", .store), ("$s8Postgres", .store),
        ("$s6Ingest", .ingest), ("$s8Ordering", .ordering), ("$s17SQLiteRecordStore", .store), ("$s6FanOut", .fanOut),
    ]

    /// The stage that a function is of; `nil` for what all of them use.
    init?(symbol: ArraySlice<UInt8>) {
        guard symbol.starts(with: "$s".utf8),
            let found = Self.modules.first(where: { symbol.starts(with: $0.prefix.utf8) })
        else { return nil }
        self = found.hop
    }

    /// What a thread does whose name says it; `nil` for the pool's, which all stages share.
    init?(_ work: ThreadWork) {
        switch work {
        case .http: self = .http
        case .log, .kafkaClient: self = .log
        case .store: self = .store
        case .fanOutWrites, .fanOutReads: self = .fanOut
        // Two kinds of readers share their threads' names, and almost all that is read under load are rows.
        case .readers: self = .store
        case .stages, .other: return nil
        }
    }
}
