import Testing

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

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
