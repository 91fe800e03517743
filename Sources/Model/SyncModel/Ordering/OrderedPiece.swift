/// A record of `ordered`: the result of one part, or a piece of it when the whole result exceeds the size of a record.
///
/// Rows and results are distributed over the pieces in order. Readers drop pieces that are not above the last
/// (changes offset, piece) that they applied (I2).
package struct OrderedPiece: Sendable, Hashable {
    /// The decision on the part as a whole.
    package enum Verdict: Sendable, Hashable {
        /// Ordered; rows, results and refusals are in this piece and the following ones.
        case ordered
        /// A repeat: the first outcome of the batch applies.
        case repeated
        /// Nothing was applied.
        case refused(BatchRefusal)
    }

    package var epoch: String
    /// The part's offset in `changes`.
    package var changesOffset: Int64
    /// The number of this piece of the result, from 0.
    package var piece: Int
    /// Whether it is the last piece of the result.
    package var isLast: Bool
    /// The hash of the schema version of the rows' values: the newest that a part in this partition had named.
    package var schema: String
    /// The record of `uploads` that the part came from.
    package var upload: UploadReference
    /// The number of the part in its batch.
    package var uploadPart: Int
    /// Log timestamp of the `uploads` record, microseconds since 1970.
    package var logTime: Int64
    /// The partition's newest timeStamp after the part.
    package var timeStamp: TimeStamp
    /// The owner of the rows.
    package var owner: SyncID
    /// The uploading device.
    package var device: Device
    package var batch: Int64?
    package var verdict: Verdict
    /// SHA-256 of the batch's content.
    package var contentHash: [UInt8]
    /// The size of the rows that the part touched (``TouchedRows``), whatever became of its changes; the same in every piece, and 0
    /// before rules version 8.
    package var touchedBytes: Int
    /// In the order of their timeStamps.
    package var rows: [WrittenRow]
    /// The results of the admitted changes.
    package var results: [ChangeResult]
    /// Part 0 only.
    ///
    /// Size and owners of the batch are repeated in every piece; refusals are distributed over the pieces, and left out where the
    /// part was not ordered.
    package var summary: BatchSummary?

    package init(
        epoch: String, changesOffset: Int64, piece: Int = 0, isLast: Bool = true, schema: String,
        upload: UploadReference, uploadPart: Int, logTime: Int64, timeStamp: TimeStamp, owner: SyncID, device: Device,
        batch: Int64?, verdict: Verdict, contentHash: [UInt8] = [], touchedBytes: Int = 0,
        rows: [WrittenRow] = [], results: [ChangeResult] = [], summary: BatchSummary? = nil
    ) {
        self.epoch = epoch
        self.changesOffset = changesOffset
        self.piece = piece
        self.isLast = isLast
        self.schema = schema
        self.upload = upload
        self.uploadPart = uploadPart
        self.logTime = logTime
        self.timeStamp = timeStamp
        self.owner = owner
        self.device = device
        self.batch = batch
        self.verdict = verdict
        self.contentHash = contentHash
        self.touchedBytes = touchedBytes
        self.rows = rows
        self.results = results
        self.summary = summary
    }
}
