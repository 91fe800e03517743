import Glibc
import Testing

extension ExitTest.Condition {
    /// A trap of Swift, as opposed to a thrown error or an invalid memory access.
    package static var trap: ExitTest.Condition {
        #if arch(x86_64)
            .signal(SIGILL)
        #else
            .signal(SIGTRAP)
        #endif
    }
}
