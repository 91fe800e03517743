/// Runs the jobs of dedicated threads in place of threads of the system: a simulation's scheduler, which owns every step.
///
/// A host runs each thread's jobs one after the other, in the order in which they came.
package protocol DedicatedThreadHost: AnyObject, Sendable {
    /// Puts a job at the end of a thread's line, to be run with ``run(_:of:)``.
    func append(_ job: UnownedJob, of thread: DedicatedThread)

    /// Calls `then` once every job in a thread's line has run.
    func close(_ thread: DedicatedThread, then: @escaping @Sendable () -> Void)

    /// Whether a job of this thread is being run.
    func isCurrent(_ thread: DedicatedThread) -> Bool
}

extension DedicatedThreadHost {
    /// Runs a job that was put in a thread's line.
    package func run(_ job: UnownedJob, of thread: DedicatedThread) { thread.run(job) }
}

/// Who runs dedicated threads.
package enum DedicatedThreads {
    /// The host of threads that are made in the current task and in those that inherit from it; `nil`: each is a thread of
    /// the system.
    @TaskLocal package static var host: (any DedicatedThreadHost)?
}
