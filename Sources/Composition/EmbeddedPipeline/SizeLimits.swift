import Gateway
import SyncModel

/// Checks, at the start of a process, that sizes which contain one another fit together.
///
/// Otherwise a batch could be acknowledged whose results no record or message can hold.
package enum SizeLimits {
    /// Which sizes do not fit; says what to set.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// The pieces of results and the largest rows and batches must fit into the records of a history.
    package static func check(_ limits: SyncLimits, in history: History) throws(Failure) {
        let size = history.recordSize
        let piece = history.pieceSize + History.recordOverhead
        if piece > size {
            throw Failure(
                description:
                    "piece-bytes is \(history.pieceSize); with \(History.recordOverhead) bytes of ids it is \(piece), more "
                    + "than max-record-bytes, \(size): lower the one or raise the other")
        }
        let remedy = "(the records of a history are as large as max-record-bytes was when it was created)"
        let row = limits.outcome.maxRowBytes
        if row > history.maximumRowBytes {
            throw Failure(
                description: "limits.max-row-bytes is \(row); twice that, for the defaults of later columns, and "
                    + "\(History.recordOverhead) bytes of ids are \(2 * row + History.recordOverhead), more than a record, "
                    + "\(size) \(remedy): set limits.max-row-bytes to at most \(history.maximumRowBytes)")
        }
        let batch = limits.maxBatchBytes + History.recordOverhead
        if batch > size {
            throw Failure(
                description:
                    "limits.max-batch-bytes is \(limits.maxBatchBytes); with \(History.recordOverhead) bytes of "
                    + "ids it is \(batch), more than a record, \(size) \(remedy): set limits.max-batch-bytes to at most "
                    + "\(max(0, size - History.recordOverhead))")
        }
    }
}
