import EmbeddedPipeline
import Gateway
import NetworkLink
import SyncModel

extension SizeLimits {
    /// A change's result in an outcome: two ids and a message, each below 400 bytes.
    private static let resultBytes = 1024

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
