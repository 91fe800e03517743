import Postgres
import RecordStore
import RelationalTables
import SyncModel
import SyncWire

/// `weir_partitions`, the position of each partition.
enum PartitionsTable {
    static func read(
        _ partition: Int, _ connection: PostgresConnection, _ statements: SystemStatements
    ) throws -> StoredPosition? {
        try position(in: connection.query(statements.position, parameters(partition)), partition, connection)
    }

    /// The parameters of the statement that reads a position.
    static func parameters(_ partition: Int) -> PostgresParameters {
        var parameters = PostgresParameters()
        parameters.append(Int32(partition))
        return parameters
    }

    static func position(
        in rows: borrowing PostgresResult, _ partition: Int, _ connection: PostgresConnection
    ) throws -> StoredPosition? {
        guard rows.count > 0 else { return nil }
        guard let timeStamp = TimeStamp(rawValue: try rows.bigint(0, 2)) else {
            throw RecordStoreError.corrupt(
                "\(connection.database): the timeStamp of partition \(partition) is out of range")
        }
        let state = PartitionState(
            nextOffset: try rows.bigint(0, 1), timeStamp: timeStamp,
            uploads: try UploadPositions(decoding: rows.bytes(0, 4)).uploads,
            schemaOrdinal: Int(try rows.integer(0, 3)))
        return StoredPosition(state: state, orderedOffset: try rows.bigint(0, 0))
    }

    /// Positions of several partitions as arrays, in the order of the statements' parameters.
    struct Positions {
        private(set) var arrays = [
            BinaryArray(.bigint), BinaryArray(.bigint), BinaryArray(.bigint), BinaryArray(.integer),
            BinaryArray(.bytea),
        ]

        mutating func append(_ position: StoredPosition) {
            arrays[0].append(position.orderedOffset)
            arrays[1].append(position.state.nextOffset)
            arrays[2].append(position.state.timeStamp.rawValue)
            arrays[3].append(Int32(position.state.schemaOrdinal))
            arrays[4].append(bytes: UploadPositions(position.state.uploads).encode().span)
        }
    }
}
