import FanOutLink
import SyncModel
import Synchronization
import ZeroMQ

/// The events for the thread of a ``FanOutServer``; bounded by what gateways requested and subscribed to.
final class ServerInbox: Sendable {
    struct Contents {
        /// Finished tasks, each with its encoded response; as many as are in flight.
        ///
        /// Tasks that read heads have no request number.
        var finished: [(gateway: Int, request: Int64?, response: [UInt8])] = []
        /// The newest head of each subscribed owner.
        var moves: [Int: [SyncID: TimeStamp]] = [:]
        /// What each stream has applied.
        var passed: [Int: StreamReport] = [:]
        var description: LinkDescription?
        var heartbeats = 0
        var isStopping = false
    }

    let wakeup: ZeroMQWakeup
    private let contents = Mutex(Contents())

    init() throws(ZeroMQError) { wakeup = try ZeroMQWakeup() }

    /// A task has ended; the response is empty if it was cancelled or had no request.
    func finished(_ gateway: Int, _ request: Int64?, _ response: [UInt8]) {
        add { $0.finished.append((gateway, request, response)) }
    }

    func move(_ gateway: Int, _ owner: SyncID, _ head: TimeStamp) {
        add { contents in
            let known = contents.moves[gateway, default: [:]][owner] ?? .zero
            contents.moves[gateway, default: [:]][owner] = max(known, head)
        }
    }

    func passed(_ report: StreamReport) { add { $0.passed.merge(report) } }

    func describe(_ description: LinkDescription) { add { $0.description = description } }

    func heartbeat() { add { $0.heartbeats += 1 } }

    func stop() { add { $0.isStopping = true } }

    func takeAll() -> Contents {
        contents.withLock { contents in
            defer { contents = Contents() }
            return contents
        }
    }

    private func add(_ change: (inout Contents) -> Void) {
        contents.withLock { change(&$0) }
        wakeup.wake()
    }
}

extension [Int: StreamReport] {
    /// Adds a report to what is known of its stream.
    mutating func merge(_ report: StreamReport) {
        self[report.partition, default: StreamReport(partition: report.partition)].merge(report)
    }
}
