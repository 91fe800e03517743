import CJobCapture
import ThreadExecutor

/// Owns every step of a run: the jobs of all tasks, the lines of dedicated threads and the timers, on one thread.
///
/// Which of the jobs that could run comes next is the seed's choice, so every interleaving that Swift allows can come up,
/// and the same seed gives the same one. Time moves when nothing can run, and a little with each step.
final class Scheduler: DedicatedThreadHost, @unchecked Sendable {
    // Unchecked: everything happens on the thread that is in `run`, and jobs are captured from that thread alone.

    /// Why a run ends before its time.
    enum Ending: Error {
        /// A task waits for something that nothing will bring.
        case nothingToDo
        /// More steps than any run takes: something runs in circles.
        case endless
    }

    private enum Entry {
        case job(UnsafeMutableRawPointer)
        case line(ThreadQueue)

        /// The number of the task that goes on, which grows with each new task; 0 for a job of none.
        var task: UInt64 {
            if case .job(let job) = self { job_capture_task(job) } else { 0 }
        }
    }

    private final class ThreadQueue {
        let thread: DedicatedThread
        var jobs: [UnownedJob] = []
        var closers: [@Sendable () -> Void] = []
        init(_ thread: DedicatedThread) { self.thread = thread }
    }

    let dice: SeededGenerator
    var trace = Trace()
    /// The time since the run began.
    private(set) var now: Duration = .zero
    private(set) var steps = 0
    private var runnable: [Entry] = []
    private var lines: [ObjectIdentifier: ThreadQueue] = [:]
    private var current: DedicatedThread?
    private var timers = TimerHeap()
    /// How often the oldest job comes next instead of any: the larger, the more orderly.
    private let order: Int

    init(dice: SeededGenerator) {
        self.dice = dice
        order = dice.pick([0, 1, 4, 20])
    }

    /// Lets a line be read by whoever looks into a failed run.
    func note(_ line: @autoclosure () -> String) { trace.note("\(milliseconds) \(line())") }

    private var milliseconds: String {
        let (seconds, attoseconds) = now.components
        return "\(seconds * 1000 + attoseconds / 1_000_000_000_000_000) ms"
    }

    /// Owns the jobs of all tasks that the closure begins, on the calling thread.
    func own<Result>(_ body: () throws -> Result) rethrows -> Result {
        job_capture_begin(
            { context, job in
                // The scheduler is alive while it owns, and jobs of this thread come only then.
                Unmanaged<Scheduler>.fromOpaque(context!).takeUnretainedValue().runnable.append(.job(job))
            }, Unmanaged.passUnretained(self).toOpaque())
        defer { job_capture_begin(nil, nil) }
        // Inherited by every task that begins meanwhile.
        return try DedicatedThreads.$host.withValue(self, operation: body)
    }

    /// Runs until it is over, within ``own(_:)``.
    ///
    /// - Parameters:
    ///   - maximumSteps: more make it ``Ending/endless``.
    ///   - between: called before each step; may throw to end the run.
    func run(maximumSteps: Int, until isOver: () -> Bool, between: () throws -> Void) throws {
        let last = steps + maximumSteps
        while !isOver() {
            guard steps < last else { throw Ending.endless }
            try between()
            try step()
        }
    }

    private func step() throws {
        steps += 1
        now += .microseconds(dice.number(1...40))
        if runnable.isEmpty || dice.once(in: 400) { skipToTimer() }
        let known = runnable.count
        while let due = timers.removeFirst(before: now) { due.fire() }
        sortNew(behind: known)
        guard !runnable.isEmpty else {
            if timers.isEmpty { throw Ending.nothingToDo }
            return
        }
        let index = order > 0 && dice.number(0...order) > 0 ? 0 : dice.number(0...runnable.count - 1)
        trace.mix(index &* 1000 &+ runnable.count)
        let entry = runnable.remove(at: index)
        let others = runnable.count
        switch entry {
        case .job(let job): job_capture_run(job)
        case .line(let line): runFirst(of: line)
        }
        sortNew(behind: others)
    }

    /// Brings what one step made runnable in the order of the tasks: whom a hash table had woken first must not show.
    private func sortNew(behind count: Int) {
        guard runnable.count > count + 1 else { return }
        let new = runnable[count...].enumerated().map { (task: $1.task, place: $0, entry: $1) }
        runnable.replaceSubrange(
            count..., with: new.sorted { ($0.task, $0.place) < ($1.task, $1.place) }.map(\.entry))
    }

    private func skipToTimer() {
        if let time = timers.nextTime { now = max(now, time) }
    }

    // MARK: Time

    /// Calls `fire` at a time.
    func schedule(at time: Duration, _ fire: @escaping @Sendable () -> Void) -> TimerHeap.Timer {
        timers.insert(at: time, fire)
    }

    // MARK: Dedicated threads

    func append(_ job: UnownedJob, of thread: DedicatedThread) {
        let line = lines[ObjectIdentifier(thread)] ?? ThreadQueue(thread)
        lines[ObjectIdentifier(thread)] = line
        line.jobs.append(job)
        if line.jobs.count == 1 { runnable.append(.line(line)) }
    }

    func close(_ thread: DedicatedThread, then: @escaping @Sendable () -> Void) {
        if let line = lines[ObjectIdentifier(thread)] { line.closers.append(then) } else { then() }
    }

    func isCurrent(_ thread: DedicatedThread) -> Bool { current === thread }

    private func runFirst(of line: ThreadQueue) {
        let outer = current
        current = line.thread
        run(line.jobs[0], of: line.thread)
        current = outer
        line.jobs.removeFirst()
        if line.jobs.isEmpty {
            lines[ObjectIdentifier(line.thread)] = nil
            for closer in line.closers { closer() }
        } else {
            runnable.append(.line(line))
        }
    }
}
