import Postgres
import RecordStore
import SyncModel
import SyncWire

/// The row of a partition in `weir_partitions`.
enum PositionRecord {
    /// Where a partition stands.
    static func read(
        _ partition: Int, _ connection: PostgresConnection, _ statements: SystemStatements
    ) throws -> StoredPosition? {
        var parameters = PostgresParameters()
        parameters.append(Int32(partition))
        let rows = try connection.query(statements.position, parameters)
        guard rows.count > 0 else { return nil }
        guard let timeStamp = TimeStamp(rawValue: try rows.bigint(0, 2)) else {
            throw RecordStoreError(
                .corrupt, message: "\(connection.place): the timeStamp of partition \(partition) is out of range")
        }
        let state = PartitionState(
            nextOffset: try rows.bigint(0, 1), timeStamp: timeStamp,
            uploads: try UploadPositions(decoding: rows.bytes(0, 4)).uploads,
            schemaOrdinal: Int(try rows.integer(0, 3)))
        return StoredPosition(state: state, orderedOffset: try rows.bigint(0, 0))
    }

    /// A position in words.
    static func describe(_ position: StoredPosition?) -> String {
        guard let position else { return "no position" }
        return "changes offset \(position.state.nextOffset), ordered offset \(position.orderedOffset)"
    }
}
