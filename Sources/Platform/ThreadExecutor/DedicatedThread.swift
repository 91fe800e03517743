import Glibc

/// One system thread as an executor, for C calls that block and must not run on the cooperative pool.
///
/// An actor that returns it from `unownedExecutor` runs all its code on the thread, one job at a time; `run` does the
/// same for a single closure, and a task may prefer it as its task executor. Jobs run in the order of arrival,
/// whatever their priority.
///
/// The job queue needs no limit of its own: a task is in it at most once and waits until its job has run, so the number of
/// tasks that use the thread bounds it.
///
/// The thread keeps this object alive until `close()`; one that is never closed lives as long as the process.
package final class DedicatedThread: SerialExecutor, TaskExecutor {
    /// How many threads this machine can run at a time, at least 1.
    package static var processors: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Debuggers show its first 15 bytes, which is what Linux keeps.
    package let name: String

    /// Runs the jobs instead of a system thread, if set.
    private let host: (any DedicatedThreadHost)?
    private let jobs = JobQueue()
    private let isBackground: Bool

    /// Starts the thread, unless the current task has a ``DedicatedThreadHost``.
    ///
    /// - Parameter isBackground: whether the system prefers other threads while processors are scarce, for long computations.
    package init(name: String, isBackground: Bool = false) throws(ThreadStartError) {
        self.name = name
        self.isBackground = isBackground
        host = DedicatedThreads.host
        if host != nil { return }
        let code = startDetachedThread(stackSize: Self.stackSize) { [self] in runUntilClosed() }
        if code != 0 { throw ThreadStartError(name: name, systemError: code) }
    }

    /// In bytes: more than the C libraries need; pages are allocated on first use.
    private static let stackSize = 2 << 20

    /// Runs a closure on the thread, for a blocking call that belongs to no actor.
    package func run<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await ClosureRunner(thread: self).perform(body)
    }

    /// Returns when every queued job has run and the thread has ended; may be repeated.
    ///
    /// A job that arrives afterwards could never run, so it traps: close when nothing calls the thread's actors any more,
    /// and never from one of them.
    package func close() async {
        await withCheckedContinuation { closer in
            if let host { host.close(self) { closer.resume() } } else { jobs.close(then: closer) }
        }
    }

    /// Whether the caller is on this thread.
    package var isCurrent: Bool { host?.isCurrent(self) ?? jobs.isServedByCurrentThread }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) {
        if let host { host.append(UnownedJob(job), of: self) } else { jobs.append(UnownedJob(job)) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor {
        UnownedTaskExecutor(ordinary: self)
    }

    package func isSameExclusiveExecutionContext(other: DedicatedThread) -> Bool {
        self === other
    }

    /// The runtime calls it for `assumeIsolated` outside of a job.
    package func checkIsolated() {
        precondition(isCurrent, "expected to run on the thread \"\(name)\"")
    }

    package func isIsolatingCurrentContext() -> Bool? {
        isCurrent
    }

    private func runUntilClosed() {
        nameCurrentThread(name)
        if isBackground { lowerPriorityOfCurrentThread() }
        jobs.serve { run($0) }
    }

    func run(_ job: UnownedJob) {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }
}

/// The system did not start a thread.
package struct ThreadStartError: Error, CustomStringConvertible {
    package let name: String
    /// The `errno`, mostly `EAGAIN`: the limit on threads is reached.
    package let systemError: Int32

    package var description: String {
        "the thread \"\(name)\" did not start: \(String(cString: strerror(systemError))) (\(systemError)); "
            + "see the limits on threads and memory (ulimit -u, cgroup pids.max)"
    }
}

/// An actor that exists for one closure, which it runs on the thread.
private actor ClosureRunner {
    private nonisolated let thread: DedicatedThread

    init(thread: DedicatedThread) {
        self.thread = thread
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    func perform<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try body()
    }
}

/// Runs the jobs of dedicated threads instead of system threads: a simulation's scheduler, which decides every step.
///
/// A host runs each thread's jobs one at a time, in the order of arrival.
package protocol DedicatedThreadHost: AnyObject, Sendable {
    /// Queues a job of a thread, to be run with ``run(_:of:)``.
    func append(_ job: UnownedJob, of thread: DedicatedThread)

    /// Calls `then` once every queued job of a thread has run.
    func close(_ thread: DedicatedThread, then: @escaping @Sendable () -> Void)

    /// Whether a job of this thread is running.
    func isCurrent(_ thread: DedicatedThread) -> Bool
}

extension DedicatedThreadHost {
    package func run(_ job: UnownedJob, of thread: DedicatedThread) { thread.run(job) }
}

package enum DedicatedThreads {
    /// The host of threads that the current task and its child tasks create; `nil`: they create system threads.
    @TaskLocal package static var host: (any DedicatedThreadHost)?
}
