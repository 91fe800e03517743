import CThreads
import Glibc
import Synchronization

/// Starts a detached thread that runs the closure; 0 or the error of the system.
package func startDetachedThread(stackSize: Int, _ body: @escaping @Sendable () -> Void) -> Int32 {
    var attributes = pthread_attr_t()
    var code = pthread_attr_init(&attributes)
    guard code == 0 else { return code }
    defer { pthread_attr_destroy(&attributes) }
    code = pthread_attr_setstacksize(&attributes, stackSize)
    guard code == 0 else { return code }
    code = pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    guard code == 0 else { return code }

    // Retained here and released exactly once: by the thread, or below if it did not start.
    let start = Unmanaged.passRetained(ThreadStart(body: body))
    var thread = pthread_t()
    code = pthread_create(
        &thread, &attributes,
        { argument in
            Unmanaged<ThreadStart>.fromOpaque(argument!).takeRetainedValue().body()
            return nil
        }, start.toOpaque())
    if code != 0 { start.release() }
    return code
}

/// Names the calling thread for debuggers and `top`; a name is cut to the 15 bytes that Linux keeps.
func nameCurrentThread(_ name: String) {
    var short = name
    while short.utf8.count > 15 { short.removeLast() }
    pthread_setname_np(pthread_self(), short)
}

/// Gives the calling thread a third of another's share of a processor, and lets threads that wake up run before it.
///
/// Since 6.12 Linux prefers what has the shorter time slice. The others keep that of the system: with a shorter one each wake-up
/// interrupts something, so that less is done at a time.
func lowerPriorityOfCurrentThread() {
    // On Linux 0 names the calling thread, not its process.
    let thread = __priority_which_t(PRIO_PROCESS.rawValue)
    setpriority(thread, 0, min(19, getpriority(thread, 0) + 5))
    weir_set_time_slice(20_000_000)
}

/// The processor time that a computation takes on the thread that runs it, whatever else the processors do meanwhile.
package final class ComputingTime: Sendable {
    private let total = Atomic(0)

    package init() {}

    /// Of the computations that have ended.
    package var nanoseconds: Int { total.load(ordering: .relaxed) }

    package func measure<Value, Failure: Error>(_ computation: () throws(Failure) -> Value) throws(Failure) -> Value {
        let start = Self.ofThread()
        defer { total.wrappingAdd(Self.ofThread() - start, ordering: .relaxed) }
        return try computation()
    }

    private static func ofThread() -> Int {
        var time = timespec()
        // Cannot fail with this clock and a valid address.
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
    }
}

private final class ThreadStart: Sendable {
    let body: @Sendable () -> Void

    init(body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}
