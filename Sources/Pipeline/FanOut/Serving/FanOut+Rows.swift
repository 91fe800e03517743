import FanOutLink
import Metrics
import SyncModel

extension FanOut {
    package func rows(_ query: StreamQuery, within limit: Duration) async throws(FanOutError) -> StreamRows? {
        let watch = Stopwatch()
        if query.selection.needsIndexes, !configuration.rowIndexes {
            throw .notReady("this fan-out has no indexes of rows: its setting faces is empty")
        }
        let required = OwnerPull(owner: query.owner, knowledge: OwnerKnowledge(), leastHead: query.leastHead)
        let changed = try await waitForStreams([required], within: limit)
        let partition = try served(query.owner)
        let snapshot = try partition.headSnapshot(of: query.owner)
        guard snapshot.heads.head >= query.leastHead else {
            if changed.isEmpty { throw .notReady("the stream was rebuilt in the meantime") }
            return nil
        }
        // Answered from memory.
        if query.selection.isEmpty(at: snapshot.heads.head) { return StreamRows(head: snapshot.heads.head) }
        let rows = try await read(partition, of: query.owner, generation: snapshot.generation) { reader in
            let heads = try reader.heads(of: query.owner, known: snapshot.heads) {
                partition.committedHeads(of: query.owner)
            }
            return try RowListing(query, heads, reader).read()
        }
        metrics.record(rows, watch)
        return rows
    }
}

extension StreamQuery.Selection {
    /// Whether it is read from ``FileSchema/rowIndexes``.
    fileprivate var needsIndexes: Bool {
        switch self {
        case .ids, .table, .changes(_, _, _?): true
        case .changes: false
        }
    }

    /// Whether a stream with this head has none of the rows.
    fileprivate func isEmpty(at head: TimeStamp) -> Bool {
        switch self {
        case .ids(_, let ids): ids.isEmpty
        case .table: false
        case .changes(let above, let upTo, _): above >= head || above >= upTo
        }
    }
}
