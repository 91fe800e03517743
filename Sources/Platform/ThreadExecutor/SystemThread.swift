import CThreadName
import Glibc

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

    // The box is retained here and given back exactly once: by the thread, or below when there is none.
    let start = Unmanaged.passRetained(ThreadStart(body: body))
    var thread = pthread_t()
    code = pthread_create(
        &thread, &attributes,
        { argument in
            // Optional on Linux, not on Darwin.
            let argument: UnsafeMutableRawPointer? = argument
            Unmanaged<ThreadStart>.fromOpaque(argument!).takeRetainedValue().body()
            return nil
        }, start.toOpaque())
    if code != 0 { start.release() }
    return code
}

/// Names the calling thread for debuggers and `top`; Linux keeps 15 bytes, so a longer name is cut between characters.
func nameCurrentThread(_ name: String) {
    var short = name
    while short.utf8.count > 15 { short.removeLast() }
    pthread_setname_np(pthread_self(), short)
}

/// What a new thread runs.
private final class ThreadStart: Sendable {
    let body: @Sendable () -> Void

    init(body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}
