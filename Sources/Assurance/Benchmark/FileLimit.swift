import Glibc

/// The limit on open files, which servers that are started here inherit.
enum FileLimit {
    /// Raises it as far as it goes without special rights; the new limit.
    @discardableResult
    static func raise() throws(BenchmarkFailure) -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .system("getrlimit", errno)
        }
        limit.rlim_cur = limit.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .system("setrlimit", errno)
        }
        return Int(clamping: limit.rlim_cur)
    }
}
