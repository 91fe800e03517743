import CJobCapture
import DeviceModel
import ThreadExecutor

/// Runs the jobs of all tasks, the queues of dedicated threads and the timers of a run on one thread.
///
/// The seed chooses which runnable job runs next, so every interleaving that Swift allows can occur, and the same seed
/// gives the same one. Time advances to the next timer when nothing can run, and a little with each step.
final class Scheduler: DedicatedThreadHost, @unchecked Sendable {
    // Unchecked: everything happens on the thread that is in `run`, and jobs are captured from that thread alone.

    /// Why a run ends early.
    enum Ending: Error {
        /// No job can run, no timer is set, and the run is not over.
        case nothingToDo
        /// The run exceeds its maximum number of steps.
        case endless
    }

    private enum Entry {
        case job(UnsafeMutableRawPointer)
        case queue(ThreadQueue)

        /// The number of the job's task, which grows with each new task; 0 for a job without one.
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

    let random: SeededGenerator
    var trace = Trace()
    /// Time since the start of the run.
    private(set) var now: Duration = .zero
    private(set) var steps = 0
    private var runnable: [Entry] = []
    private var queues: [ObjectIdentifier: ThreadQueue] = [:]
    private var current: DedicatedThread?
    private var timers = TimerHeap()
    /// The oldest job runs next in `order` of `order + 1` steps, instead of a random one.
    private let order: Int

    init(random: SeededGenerator) {
        self.random = random
        order = random.pick([0, 1, 4, 20])
    }

    func record(_ line: @autoclosure () -> String) { trace.record("\(milliseconds) \(line())") }

    private var milliseconds: String {
        let (seconds, attoseconds) = now.components
        return "\(seconds * 1000 + attoseconds / 1_000_000_000_000_000) ms"
    }

    /// Captures the jobs of all tasks that the closure starts, on the calling thread.
    func capturing<Result>(_ body: () throws -> Result) rethrows -> Result {
        job_capture_begin(
            { context, job in
                // The scheduler outlives the capture.
                Unmanaged<Scheduler>.fromOpaque(context!).takeUnretainedValue().runnable.append(.job(job))
            }, Unmanaged.passUnretained(self).toOpaque())
        defer { job_capture_begin(nil, nil) }
        // Inherited by every task that the closure starts.
        return try DedicatedThreads.$host.withValue(self, operation: body)
    }

    /// Runs until `isOver`, within ``capturing(_:)``.
    ///
    /// - Parameters:
    ///   - maximumSteps: more steps throw ``Ending/endless``.
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
        now += .microseconds(random.number(1...40))
        if runnable.isEmpty || random.once(in: 400) { skipToTimer() }
        let known = runnable.count
        while let due = timers.removeFirst(before: now) { due.fire() }
        sortNew(after: known)
        guard !runnable.isEmpty else {
            if timers.isEmpty { throw Ending.nothingToDo }
            return
        }
        let index = order > 0 && random.number(0...order) > 0 ? 0 : random.number(0...runnable.count - 1)
        trace.mix(index &* 1000 &+ runnable.count)
        let entry = runnable.remove(at: index)
        let others = runnable.count
        switch entry {
        case .job(let job): job_capture_run(job)
        case .queue(let queue): runFirst(of: queue)
        }
        sortNew(after: others)
    }

    /// Sorts the jobs that one step made runnable by their tasks: the order of a hash table must not matter.
    private func sortNew(after count: Int) {
        guard runnable.count > count + 1 else { return }
        let new = runnable[count...].enumerated().map { (task: $1.task, index: $0, entry: $1) }
        runnable.replaceSubrange(
            count..., with: new.sorted { ($0.task, $0.index) < ($1.task, $1.index) }.map(\.entry))
    }

    private func skipToTimer() {
        if let time = timers.nextTime { now = max(now, time) }
    }

    // MARK: Time

    func schedule(at time: Duration, _ fire: @escaping @Sendable () -> Void) -> TimerHeap.Timer {
        timers.insert(at: time, fire)
    }

    // MARK: Dedicated threads

    func append(_ job: UnownedJob, of thread: DedicatedThread) {
        let queue = queues[ObjectIdentifier(thread)] ?? ThreadQueue(thread)
        queues[ObjectIdentifier(thread)] = queue
        queue.jobs.append(job)
        if queue.jobs.count == 1 { runnable.append(.queue(queue)) }
    }

    func close(_ thread: DedicatedThread, then: @escaping @Sendable () -> Void) {
        if let queue = queues[ObjectIdentifier(thread)] { queue.closers.append(then) } else { then() }
    }

    func isCurrent(_ thread: DedicatedThread) -> Bool { current === thread }

    private func runFirst(of queue: ThreadQueue) {
        let outer = current
        current = queue.thread
        run(queue.jobs[0], of: queue.thread)
        current = outer
        queue.jobs.removeFirst()
        if queue.jobs.isEmpty {
            queues[ObjectIdentifier(queue.thread)] = nil
            for closer in queue.closers { closer() }
        } else {
            runnable.append(.queue(queue))
        }
    }
}
