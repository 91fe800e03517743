import LinkWire
import SyncModel
import Synchronization
import ZeroMQ

/// What others tell the thread of a ``FanOutServer``; it never grows beyond what gateways asked for.
final class ServerInbox: Sendable {
    /// What has come since the last look.
    struct Contents {
        /// Answers to questions, encoded; as many as are under way.
        var answers: [(gateway: Int, number: Int64?, bytes: [UInt8])] = []
        /// Heads that moved, the newest of each; as many as there are subscriptions.
        var moves: [Int: [SyncID: TimeStamp]] = [:]
        /// How far uploads have passed, the newest of each partition.
        var passed: [Int: Int64] = [:]
        var description: LinkDescription?
        var beats = 0
        var isStopping = false
    }

    let bell: ZeroMQWakeup
    private let contents = Mutex(Contents())

    init() throws(ZeroMQError) { bell = try ZeroMQWakeup() }

    /// The answer to a question is there; `bytes` are none where nobody is to be told.
    func answer(_ gateway: Int, _ number: Int64?, _ bytes: [UInt8]) {
        note { $0.answers.append((gateway, number, bytes)) }
    }

    func move(_ gateway: Int, _ owner: SyncID, _ head: TimeStamp) {
        note { contents in
            let known = contents.moves[gateway, default: [:]][owner] ?? .zero
            contents.moves[gateway, default: [:]][owner] = max(known, head)
        }
    }

    func passed(_ upload: UploadReference) {
        note { $0.passed[upload.partition] = max($0.passed[upload.partition] ?? 0, upload.offset) }
    }

    func describe(_ description: LinkDescription) { note { $0.description = description } }

    func beat() { note { $0.beats += 1 } }

    func stop() { note { $0.isStopping = true } }

    /// Takes everything.
    func take() -> Contents {
        contents.withLock { contents in
            defer { contents = Contents() }
            return contents
        }
    }

    private func note(_ change: (inout Contents) -> Void) {
        contents.withLock { change(&$0) }
        bell.ring()
    }
}
