import ChangeLog

/// A stage as a process of its own, on a log in Kafka.
package enum Role: String, Sendable, CaseIterable {
    case gateway, ingest, ordering, fanout

    /// The topics without which the role cannot work, besides `control`.
    package var topics: [Topic] {
        switch self {
        case .gateway: [.uploads]
        case .ingest: [.uploads, .changes]
        case .ordering: [.changes, .ordered]
        case .fanout: [.ordered]
        }
    }
}
