import RecordStore
import SyncModel

extension PartitionReplay {
    /// Compares tables with those that the replay made, which stand where these say that they do.
    ///
    /// - Parameter position: where the tables stand.
    func compare(_ position: StoredPosition, of tables: some RecordReader, _ report: inout Report) async throws {
        let made = try await self.position()
        let upper = try await published.nextNewOffset()
        // Of results that are not kept any longer nobody knows the offsets.
        let lower = await published.hasMet ? made.orderedOffset : 0
        report.add("position", PositionComparison.run(made, position, ordered: min(lower, upper)...upper))
        do {
            let comparison = TableComparison(partition: partition, schemas: schemas, expected: store, found: tables)
            report.add("tables", try await comparison.content(ordinal: made.state.schemaOrdinal))
        } catch let error as RecordStoreError {
            report.add("tables", .unreadable(error))
        }
    }
}

extension Finding {
    /// What tables come to that cannot be read.
    static func unreadable(_ error: RecordStoreError) -> Finding {
        guard error.code == .corrupt else { return .unknown("they cannot be read: \(error)") }
        return .different(Difference("the tables", expected: "readable", found: error.message), count: 1)
    }
}
