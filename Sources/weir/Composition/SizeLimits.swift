import Gateway
import NetworkLink
import SyncModel

/// Checks, at the start of a process, that sizes which contain one another fit together.
///
/// Otherwise a batch could be acknowledged whose results no record or message can hold.
enum SizeLimits {
    /// Which sizes do not fit; says what to set.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// A change's result in an outcome: two ids and a message, each below 400 bytes.
    private static let resultBytes = 1024

    /// The pieces of results and the largest rows and batches must fit into the records of a history.
    static func check(_ limits: SyncLimits, in history: History) throws(Failure) {
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

    /// The largest pages and outcomes must fit into the messages of the link.
    static func check(
        _ gateway: GatewayConfiguration, _ limits: SyncLimits, _ link: LinkConfiguration, in history: History
    ) throws(Failure) {
        let results = limits.outcome.maxChanges * resultBytes
        // Other gateways may have a higher limit of rows, up to that of the history.
        let rows = 2 * min(history.maximumRowBytes, OutcomeLimits.greatest.maxRowBytes)
        let sum = gateway.pageBytes + rows + results + History.recordOverhead
        guard sum > link.maximumMessageBytes else { return }
        throw Failure(
            description:
                "gateway.page-bytes, \(gateway.pageBytes), one more row as large as a record, \(rows), "
                + "\(resultBytes) bytes for each of limits.max-changes, \(results), and \(History.recordOverhead) bytes of ids "
                + "are \(sum), more than link.max-message-bytes, \(link.maximumMessageBytes): lower one of them, or raise "
                + "link.max-message-bytes on all gateways and fan-outs")
    }
}
