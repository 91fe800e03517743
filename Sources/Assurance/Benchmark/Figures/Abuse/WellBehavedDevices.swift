import LoadTools
import Synchronization

/// Two devices of an owner: one syncs small batches one after the other, the other waits for each with a long poll.
struct WellBehavedDevices: Sendable {
    static let batchSize = 10
    /// Nanoseconds between the beginnings of two batches, where the first is answered by then.
    private static let interval: Int64 = 50_000_000
    /// Nanoseconds at the beginning; what ends within them is not counted.
    private static let warmUp: Int64 = 500_000_000

    struct Times: Sendable {
        /// Milliseconds of each sync.
        var syncs: [Double] = []
        /// Milliseconds from the beginning of each sync until the other device's poll had the batch.
        var polls: [Double] = []
        /// Answers of 429 and 503, all with Retry-After, after which a device repeated its request.
        var refused = 0
        /// Answers of 504 to a batch that is durable, after which the device repeated its request.
        var pending = 0
        /// Batches synced, with those that were not counted.
        var batches = 0
    }

    let owner: String
    /// The batch that is synced next.
    private(set) var nextBatch = 1
    private var floor = 0

    init(owner: String) { self.owner = owner }

    /// What both devices of a phase know.
    final class Phase: Sendable {
        private struct State {
            /// When the sync of each batch began.
            var begun: [Int64] = []
            var hasEnded = false
            var times = Times()
        }

        let start: Int64
        let end: Int64
        private let state = Mutex(State())

        init(start: Int64, end: Int64) {
            self.start = start
            self.end = end
        }

        var times: Times { state.withLock { $0.times } }
        /// How many batches there are; `nil` before the last one.
        fileprivate var count: Int? { state.withLock { $0.hasEnded ? $0.begun.count : nil } }

        fileprivate func update(_ body: (inout Times) -> Void) { state.withLock { body(&$0.times) } }

        /// Notes when a batch begins; nothing is measured after the last one.
        fileprivate func begin(isLast: Bool) {
            state.withLock { state in
                state.begun.append(SystemCall.nanoseconds())
                state.hasEnded = isLast
                state.times.batches += 1
            }
        }

        fileprivate func record(_ batch: Int, in list: WritableKeyPath<Times, [Double]>) {
            state.withLock { state in
                let isLast = state.hasEnded && batch == state.begun.count - 1
                guard !isLast, SystemCall.nanoseconds() >= start + warmUp else { return }
                state.times[keyPath: list].append(1000 * SystemCall.seconds(since: state.begun[batch]))
            }
        }
    }

    /// Syncs batches until the phase ends, and then one for which the other device waits.
    mutating func sync(_ phase: Phase, _ port: UInt16) throws {
        let connection = try LoadConnection(port: port)
        let requests = Requests(owner: owner, device: "k1")
        var rows = Workload.Rows(seed: UInt64(nextBatch) << 20 | 5)
        var (number, isLast) = (0, false)
        while !isLast {
            let body = (0..<Self.batchSize).map { _ in rows.next() }
            let request = requests.sync(batch: nextBatch, of: body, above: floor)
            if number == 0 { SystemCall.wait(until: phase.start) }
            let begin = SystemCall.nanoseconds()
            isLast = begin >= phase.end
            phase.begin(isLast: isLast)
            try Self.repeating(request, on: connection, phase) { floor = try PullAnswer($0).head }
            phase.record(number, in: \.syncs)
            nextBatch += 1
            number += 1
            if !isLast { SystemCall.wait(until: min(begin + Self.interval, phase.end)) }
        }
    }

    /// Polls until all batches of a phase have arrived.
    func poll(_ phase: Phase, _ port: UInt16) throws {
        let connection = try LoadConnection(port: port)
        let requests = Requests(owner: owner, device: "k2")
        var (floor, rows, number) = (floor, 0, 0)
        while phase.count.map({ number < $0 }) ?? true {
            let request = requests.pull(above: floor, limit: 1000, waitSeconds: 20)
            try Self.repeating(request, on: connection, phase) { body in
                rows += PullAnswer.rows(in: body)
                let answer = try PullAnswer(body)
                if !answer.hasMore { floor = answer.head }
            }
            // Rows arrive in the order in which they were uploaded.
            while rows >= Self.batchSize * (number + 1) {
                phase.record(number, in: \.polls)
                number += 1
            }
        }
    }

    /// Repeats a request until it succeeds, as long as its refusals say when, or its batch is durable.
    private static func repeating(
        _ request: [UInt8], on connection: LoadConnection, _ phase: Phase, _ body: (ArraySlice<UInt8>) throws -> Void
    ) throws {
        // A wait for an outcome takes up to ten seconds, a refusal one or more.
        for _ in 0..<60 {
            var isPending = false
            let succeeds = try connection.exchange(request) { status, answer in
                isPending = status == 504
                if isPending || [429, 503].contains(status), isPending || connection.retryAfter != nil { return false }
                try LoadConnection.check(status, answer, 200)
                try body(answer)
                return true
            }
            if succeeds { return }
            if isPending {
                phase.update { $0.pending += 1 }
            } else {
                phase.update { $0.refused += 1 }
                let seconds = Int64(connection.retryAfter ?? 1)
                SystemCall.wait(until: SystemCall.nanoseconds() + seconds * 1_000_000_000)
            }
        }
        throw LoadFailure("a device that behaves well was refused sixty times")
    }
}
