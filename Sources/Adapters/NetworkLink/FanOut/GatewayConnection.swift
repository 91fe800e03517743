import FanOutLink
import SyncModel

/// The connection of a gateway with a ``FanOutServer``, on the server's thread.
final class GatewayConnection {
    /// The id that the router socket gave the connection.
    let id: [UInt8]
    /// The server's own number for the connection: unlike an id it is never used again.
    let number: Int
    let wantsPassed: Bool
    /// The requests in flight.
    var tasks: [Int64: Task<Void, Never>] = [:]
    var subscriptions: [SyncID: any FanOutSubscription] = [:]
    /// Subscribed owners whose head was not sent yet, because their stream was not ready.
    var missingHeads: Set<SyncID> = []
    /// Notifications that wait until the gateway has read what was sent: the newest value of each owner and stream.
    var moves: [SyncID: TimeStamp] = [:]
    var passed: [Int: StreamReport] = [:]
    /// Heartbeats since the last message.
    var silentHeartbeats = 0
    /// Heartbeats for which the gateway has read nothing of what was sent.
    var stuckHeartbeats = 0
    private var sent: Int64 = 0
    private var received: Int64 = 0

    init(id: [UInt8], number: Int, wantsPassed: Bool) {
        self.id = id
        self.number = number
        self.wantsPassed = wantsPassed
    }

    /// The bytes sent that the gateway has not acknowledged.
    var unreadBytes: Int { Int(sent - received) }

    func recordSent(_ bytes: Int) { sent += Int64(bytes) }

    /// Records the total of bytes that the gateway has received, as its ping says.
    func recordReceived(_ total: Int64) {
        let total = min(total, sent)
        guard total > received else { return }
        received = total
        stuckHeartbeats = 0
    }

    /// Cancels the gateway's requests and subscriptions.
    func close() {
        for task in tasks.values { task.cancel() }
        for subscription in subscriptions.values { subscription.cancel() }
        tasks = [:]
        subscriptions = [:]
    }
}
