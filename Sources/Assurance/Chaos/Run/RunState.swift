import LoadTools
import Synchronization

/// What the threads of a run share: progress, findings, waits and the log of events.
final class RunState: Sendable {
    /// When a run stops writing.
    enum Goal: Sendable, Equatable {
        case changes(Int)
        case seconds(Int)
        /// Once each process was killed in turn, in place of random faults.
        case killsInTurn
    }

    private struct State {
        var changes = 0
        var batches = 0
        var areFaultsPlayed = false
        var findings: [Finding] = []
        /// When the devices began to write.
        var began: Int64 = 0
        /// No device waits longer for its outcome; `nil` before the end.
        var deadline: Int64?
    }

    /// Findings that are kept; more are counted.
    private static let keptFindings = 200

    let events: EventLog
    let waits: WaitLog
    private let goal: Goal
    private let state = Mutex(State())
    private let findingCount = Mutex(0)

    init(_ goal: Goal, _ events: EventLog) {
        self.goal = goal
        self.events = events
        waits = WaitLog()
    }

    /// Whether enough was written, or something is wrong.
    var isDone: Bool {
        state.withLock { state in
            if !state.findings.isEmpty || state.deadline != nil { return true }
            return switch goal {
            case .changes(let count): state.changes >= count
            case .seconds(let count): SystemCall.seconds(since: state.began) >= Double(count)
            case .killsInTurn: state.areFaultsPlayed
            }
        }
    }

    /// Whether devices must give up.
    var isExpired: Bool { state.withLock { $0.deadline.map { SystemCall.nanoseconds() > $0 } ?? false } }

    /// Since the devices began to write.
    var seconds: Double { SystemCall.seconds(since: state.withLock { $0.began }) }

    /// The devices begin to write.
    func begin() { state.withLock { $0.began = SystemCall.nanoseconds() } }

    /// The changes and batches acknowledged so far, each once.
    var progress: (changes: Int, batches: Int) { state.withLock { ($0.changes, $0.batches) } }

    var findings: [Finding] { state.withLock { $0.findings } }

    /// How many findings there are, with those that are not kept.
    var totalFindings: Int { findingCount.withLock { $0 } }

    /// All faults were played, or one failed.
    func endFaults() { state.withLock { $0.areFaultsPlayed = true } }

    func acknowledged(_ changes: Int) {
        state.withLock { state in
            state.changes += changes
            state.batches += 1
        }
    }

    /// Gives devices so many seconds to finish.
    func expire(after seconds: Int) {
        let deadline = SystemCall.nanoseconds() + Int64(seconds) * 1_000_000_000
        state.withLock { $0.deadline = deadline }
    }

    func found(_ finding: Finding) {
        events.record("FINDING \(finding.kind.rawValue): \(finding.text)")
        findingCount.withLock { $0 += 1 }
        state.withLock { state in
            if state.findings.count < Self.keptFindings { state.findings.append(finding) }
        }
    }
}
