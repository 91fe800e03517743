import RecordStore
import RelationalTables
import SQLite
import SyncModel
import SyncWire

/// `weir_partitions`, the position of each partition, and `weir_owners`, the partition of each owner and what it has.
enum PartitionsTable {
    static func read(_ partition: Int, _ connection: Connection) throws -> StoredPosition? {
        var statement = try connection.statement(
            """
            SELECT ordered_offset, next_offset, time_stamp, schema_ordinal, uploads
            FROM weir_partitions WHERE partition = ?1
            """)
        try statement.bind(integer: Int64(partition), at: 1)
        guard try statement.step() else { return nil }
        guard let timeStamp = TimeStamp(rawValue: try statement.integer(at: 2)) else {
            throw RecordStoreError.corrupt(
                "\(connection.path): the timeStamp of partition \(partition) is out of range")
        }
        let state = PartitionState(
            nextOffset: try statement.integer(at: 1), timeStamp: timeStamp,
            uploads: try UploadPositions(decoding: try statement.bytes(at: 4)).uploads,
            schemaOrdinal: Int(try statement.integer(at: 3)))
        return StoredPosition(state: state, orderedOffset: try statement.integer(at: 0))
    }

    /// Sets the position by compare-and-set.
    ///
    /// - Throws: `RecordStoreError` fenced, if the partition is not at the expected position.
    static func update(_ step: StoreStep, _ connection: Connection) throws {
        let found = try read(step.partition, connection)
        guard found == step.expected else {
            throw RecordStoreError.fenced(step, found: found, database: connection.path)
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

    /// Records the owner's partition at its first row or outcome.
    ///
    /// - Throws: `RecordStoreError` if another partition is recorded.
    static func insertOwner(_ owner: SyncID, in partition: Int, _ connection: Connection) throws {
        if let known = try self.partition(of: owner, connection) {
            guard known != partition else { return }
            throw RecordStoreError.incompatible(
                "owner \(owner) is in partition \(known), and partition \(partition) has a row or outcome of it; the number "
                    + "of partitions must not change: set another path, or restore the log these tables belong to",
                database: connection.path)
        }
        var statement = try connection.statement("INSERT INTO weir_owners (sync_id, partition) VALUES (?1, ?2)")
        try statement.bind(text: owner.text, at: 1)
        try statement.bind(integer: Int64(partition), at: 2)
        try statement.run()
    }

    /// Sets what an owner has, whose partition is recorded.
    static func write(_ usage: OwnerUsage, of owner: SyncID, _ connection: Connection) throws {
        var statement = try connection.statement(
            """
            UPDATE weir_owners SET rows = ?2, bytes = ?3, deleted_rows = ?4, deleted_bytes = ?5 WHERE sync_id = ?1
            """)
        try statement.bind(text: owner.text, at: 1)
        try statement.bind(integer: usage.rows, at: 2)
        try statement.bind(integer: usage.bytes, at: 3)
        try statement.bind(integer: usage.deletedRows, at: 4)
        try statement.bind(integer: usage.deletedBytes, at: 5)
        try statement.run()
    }

    static func usage(of owner: SyncID, _ connection: Connection) throws -> OwnerUsage {
        var statement = try connection.statement(
            "SELECT rows, bytes, deleted_rows, deleted_bytes FROM weir_owners WHERE sync_id = ?1")
        try statement.bind(text: owner.text, at: 1)
        return try statement.step() ? try usage(in: statement) : OwnerUsage()
    }

    /// - Parameter statement: has the numbers as its first columns.
    static func usage(in statement: borrowing Statement) throws -> OwnerUsage {
        OwnerUsage(
            rows: try statement.integer(at: 0), bytes: try statement.integer(at: 1),
            deletedRows: try statement.integer(at: 2), deletedBytes: try statement.integer(at: 3))
    }

    private static func partition(of owner: SyncID, _ connection: Connection) throws -> Int? {
        var statement = try connection.statement("SELECT partition FROM weir_owners WHERE sync_id = ?1")
        try statement.bind(text: owner.text, at: 1)
        return try statement.step() ? Int(try statement.integer(at: 0)) : nil
    }
}
