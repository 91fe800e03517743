import FanOutLink
import LinkWire
import SyncModel

/// A gateway that a ``FanOutServer`` is connected with, on its thread.
final class ServedGateway {
    /// What the router knows the connection by.
    let id: [UInt8]
    /// What the server knows it by; never used again, while ids may be.
    let number: Int
    let wantsPassed: Bool
    /// The questions under way.
    var tasks: [Int64: Task<Void, Never>] = [:]
    /// The owners whose moves it wants to know.
    var subscriptions: [SyncID: any FanOutSubscription] = [:]
    /// Those whose head it was not told, because their stream was not ready.
    var owed: Set<SyncID> = []
    /// What it is to be told when it has read what was sent.
    var moves: [SyncID: TimeStamp] = [:]
    var passed: [Int: Int64] = [:]
    /// For how many beats nothing came from it.
    var silentBeats = 0
    /// For how many beats it has read nothing of what was sent.
    var stuckBeats = 0
    /// Bytes sent, and those of them that it has.
    private(set) var sent: Int64 = 0
    private(set) var received: Int64 = 0

    init(id: [UInt8], number: Int, wantsPassed: Bool) {
        self.id = id
        self.number = number
        self.wantsPassed = wantsPassed
    }

    /// Bytes on their way.
    var unread: Int { Int(sent - received) }

    func noteSent(_ bytes: Int) { sent += Int64(bytes) }

    func noteReceived(_ total: Int64) {
        let total = min(total, sent)
        guard total > received else { return }
        received = total
        stuckBeats = 0
    }

    /// Ends all that is done for it.
    func leave() {
        for task in tasks.values { task.cancel() }
        for subscription in subscriptions.values { subscription.cancel() }
        tasks = [:]
        subscriptions = [:]
    }
}
