import Glibc
import Testing

extension ExitTest.Condition {
    /// A trap of Swift, rather than an error that was thrown or an access to bad memory.
    static var trap: ExitTest.Condition {
        #if arch(x86_64)
            .signal(SIGILL)
        #else
            .signal(SIGTRAP)
        #endif
    }
}
