import Glibc

/// Time, files and folders of Linux.
package enum SystemCall {
    package static func text(_ code: Int32) -> String { String(cString: strerror(code)) }

    /// The monotonic time in nanoseconds.
    package static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    package static func seconds(since start: Int64) -> Double { Double(nanoseconds() - start) / 1e9 }

    /// Runs a body and returns the seconds it took with its value.
    package static func timed<Value>(_ body: () throws -> Value) throws -> (value: Value, seconds: Double) {
        let start = nanoseconds()
        let value = try body()
        return (value, seconds(since: start))
    }

    /// The CPU time that a process has used in nanoseconds, including threads that have ended.
    package static func cpuNanoseconds(of process: pid_t) throws(LoadFailure) -> Int64 {
        var clock = clockid_t()
        let code = clock_getcpuclockid(process, &clock)
        guard code == 0 else { throw .system("clock_getcpuclockid", code) }
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else { throw .system("clock_gettime", errno) }
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Sleeps until a monotonic time.
    package static func wait(until moment: Int64) {
        var time = timespec(tv_sec: Int(moment / 1_000_000_000), tv_nsec: Int(moment % 1_000_000_000))
        while clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil) == EINTR {}
    }

    /// The content of a small file; of `/proc`, whose files have no size.
    package static func contents(of path: String) throws(LoadFailure) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system("opening \(path)", errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .system("reading \(path)", errno) }
            if count == 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes += piece[..<count]
        }
    }

    package static func remove(_ path: String) throws(LoadFailure) {
        guard unlink(path) == 0 else { throw .system("removing \(path)", errno) }
    }

    /// The names in a folder, without `.` and `..`.
    package static func names(in folder: String) throws(LoadFailure) -> [String] {
        guard let directory = opendir(folder) else { throw .system("opening \(folder)", errno) }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}

/// The limit on open files, which the servers started here inherit.
package enum FileLimit {
    /// Raises it to the hard limit and returns that.
    @discardableResult
    package static func raise() throws(LoadFailure) -> Int {
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
