import Postgres
import RecordStore
import SyncModel
import SyncWire

/// Positions of several partitions as arrays.
struct PositionArrays {
    private var orderedOffsets = BinaryArray(.bigint)
    private var nextOffsets = BinaryArray(.bigint)
    private var timeStamps = BinaryArray(.bigint)
    private var schemaOrdinals = BinaryArray(.integer)
    private var uploads = BinaryArray(.bytea)

    mutating func append(_ position: StoredPosition) {
        orderedOffsets.append(position.orderedOffset)
        nextOffsets.append(position.state.nextOffset)
        timeStamps.append(position.state.timeStamp.rawValue)
        schemaOrdinals.append(Int32(position.state.schemaOrdinal))
        uploads.append(bytes: UploadPositions(position.state.uploads).encode().span)
    }

    /// All arrays in the order of the statements' parameters.
    var all: [BinaryArray] { [orderedOffsets, nextOffsets, timeStamps, schemaOrdinals, uploads] }
}
