import Gateway
import HTTP
import Ordering
import SQLiteChangeLog
import SQLiteRecordStore
import SyncModel

/// The memory that a server with the default settings may have, in bytes; docs/operations.md has it as a formula of settings.
enum MemoryBound {
    /// The program, its threads' stacks, the caches of the streams' connections, and what the allocator keeps.
    private static let base = 128 << 20
    /// `uploads`, `changes`, `ordered` and `dead-letters`.
    private static let topics = 4

    /// While one owner abuses it, whose batches are ordered one after the other.
    static var bytes: Int {
        let gateway = GatewayConfiguration()
        let log = SQLiteChangeLogConfiguration(path: "")
        let store = SQLiteRecordStoreConfiguration(path: "")
        // A quarter more of uploads may wait for earlier ones. A page is in memory twice while it is rendered: as rows and as response.
        let requests =
            gateway.server.maxBytesInFlight + gateway.uploadBytesInFlight * 5 / 4
            + 2 * gateway.server.maxAnswerBytesInFlight
        let queues = log.queueBytes + topics * Owners.partitions * log.tailBytes
        // With the shares of the partitions.
        let results = 2 * OrderingConfiguration().overlayBytes
        // As rows read, as rows written, and as records, with what each takes beside its values: of a batch, or of a step with several.
        let batch = 6 * max(SyncLimits.standardOutcome.maxBatchRowBytes, OrderingConfiguration().stepRowBytes)
        return base + requests + queues + results + batch + 2 * store.cacheBytes
    }
}
