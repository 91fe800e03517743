import RecordStore
import SQLite
import SyncModel
import SyncWire

/// The row of a partition in `weir_partitions`.
enum PositionRecord {
    /// Where a partition stands.
    static func read(_ partition: Int, _ connection: Connection) throws -> StoredPosition? {
        var statement = try connection.statement(
            """
            SELECT ordered_offset, next_offset, time_stamp, schema_ordinal, uploads
            FROM weir_partitions WHERE partition = ?1
            """)
        try statement.bind(integer: Int64(partition), at: 1)
        guard try statement.step() else { return nil }
        guard let timeStamp = TimeStamp(rawValue: try statement.integer(at: 2)) else {
            throw RecordStoreError(
                .corrupt, message: "\(connection.path): the timeStamp of partition \(partition) is out of range")
        }
        let state = PartitionState(
            nextOffset: try statement.integer(at: 1), timeStamp: timeStamp,
            uploads: try UploadPositions(decoding: try statement.bytes(at: 4)).uploads,
            schemaOrdinal: Int(try statement.integer(at: 3)))
        return StoredPosition(state: state, orderedOffset: try statement.integer(at: 0))
    }

    /// Moves a partition on.
    ///
    /// - Throws: `RecordStoreError` fenced, where it does not stand as expected.
    static func move(_ step: StoreStep, _ connection: Connection) throws {
        let found = try read(step.partition, connection)
        guard found == step.expected else {
            throw RecordStoreError(
                .fenced,
                message: "partition \(step.partition) stands at \(describe(found)) and was expected at "
                    + "\(describe(step.expected)): another worker has moved it on")
        }
        var statement = try connection.statement(
            """
            INSERT INTO weir_partitions (partition, ordered_offset, next_offset, time_stamp, schema_ordinal, uploads)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (partition) DO UPDATE SET
                ordered_offset = excluded.ordered_offset, next_offset = excluded.next_offset,
                time_stamp = excluded.time_stamp, schema_ordinal = excluded.schema_ordinal, uploads = excluded.uploads
            """)
        let state = step.position.state
        try statement.bind(integer: Int64(step.partition), at: 1)
        try statement.bind(integer: step.position.orderedOffset, at: 2)
        try statement.bind(integer: state.nextOffset, at: 3)
        try statement.bind(integer: state.timeStamp.rawValue, at: 4)
        try statement.bind(integer: Int64(state.schemaOrdinal), at: 5)
        try statement.bind(blob: UploadPositions(state.uploads).encode(), at: 6)
        try statement.run()
    }

    private static func describe(_ position: StoredPosition?) -> String {
        guard let position else { return "no position" }
        return "changes offset \(position.state.nextOffset), ordered offset \(position.orderedOffset)"
    }
}
