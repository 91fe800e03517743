import Glibc

/// One thread of the system as an executor: for C calls that block, which never belong on the cooperative pool.
///
/// An actor that returns this from `unownedExecutor` runs all its code on the thread, one job after the other; `run`
/// does the same for a single closure, and a task may prefer it as its task executor. Jobs run in the order they
/// arrive, whatever their priority.
///
/// The line of jobs needs no limit of its own: a task stands in it at most once and waits until its job has run, so the
/// line is never longer than the number of tasks that use the thread. Whoever starts those tasks bounds them.
///
/// The thread keeps this object alive until `close()`; one that is never closed lives as long as the process.
package final class DedicatedThread: SerialExecutor, TaskExecutor {
    /// The name given at the start; debuggers show as much of it as the system keeps (Linux: 15 bytes).
    package let name: String

    /// Runs the jobs in place of a thread of the system, where there is one.
    private let host: (any DedicatedThreadHost)?
    private let line = JobQueue()

    /// Starts the thread, which waits for its first job; none where the current task has a ``DedicatedThreadHost``.
    ///
    /// - Throws: `ThreadStartError` when the system refuses another thread.
    package init(name: String) throws(ThreadStartError) {
        self.name = name
        host = DedicatedThreads.host
        if host != nil { return }
        let code = startDetachedThread(stackSize: Self.stackSize) { [self] in runUntilClosed() }
        if code != 0 { throw ThreadStartError(name: name, systemError: code) }
    }

    /// The size of the stack in bytes: more than C libraries need, and the same everywhere.
    ///
    /// The systems' defaults lie between 128 KiB and 8 MiB. It is address space, taken up only where it is touched.
    private static let stackSize = 2 << 20

    /// Runs a closure on the thread and returns its result: for one blocking call that belongs to no actor.
    package func run<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await Visit(thread: self).perform(body)
    }

    /// Ends the thread once every job in its line has run, and returns when it has; closing again is harmless.
    ///
    /// A job that arrives afterwards could never run, so it traps: close when nothing will call the actors that live
    /// here again, and never from one of them.
    package func close() async {
        await withCheckedContinuation { closer in
            if let host { host.close(self) { closer.resume() } } else { line.close(then: closer) }
        }
    }

    /// Whether the caller is on this thread.
    package var isCurrent: Bool { host?.isCurrent(self) ?? line.isServedByCurrentThread }

    // MARK: Executor

    /// Puts a job at the end of the line.
    package func enqueue(_ job: consuming ExecutorJob) {
        if let host { host.append(UnownedJob(job), of: self) } else { line.append(UnownedJob(job)) }
    }

    /// The thread as the executor of an actor.
    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// The thread as the preferred executor of a task.
    package func asUnownedTaskExecutor() -> UnownedTaskExecutor {
        UnownedTaskExecutor(ordinary: self)
    }

    /// Two executors are one context only when they are the same thread.
    package func isSameExclusiveExecutionContext(other: DedicatedThread) -> Bool {
        self === other
    }

    /// Traps unless the caller is on this thread; the runtime asks on `assumeIsolated` outside of a job.
    package func checkIsolated() {
        precondition(isCurrent, "expected to run on the thread \"\(name)\"")
    }

    /// Tells the runtime whether the caller is on this thread.
    package func isIsolatingCurrentContext() -> Bool? {
        isCurrent
    }

    private func runUntilClosed() {
        nameCurrentThread(name)
        line.serve { run($0) }
    }

    /// Runs a job as one of this thread's.
    func run(_ job: UnownedJob) {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }
}

/// The system would not start a thread.
package struct ThreadStartError: Error, CustomStringConvertible {
    /// The name the thread would have had.
    package let name: String
    /// The error of the system (`errno`), mostly `EAGAIN`: the limit on threads is reached.
    package let systemError: Int32

    /// The reason in words.
    package var description: String {
        "the thread \"\(name)\" did not start: \(String(cString: strerror(systemError))) (\(systemError)); "
            + "see the limits on threads and memory (ulimit -u, cgroup pids.max)"
    }
}

/// A stay of one closure on a thread.
private actor Visit {
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
