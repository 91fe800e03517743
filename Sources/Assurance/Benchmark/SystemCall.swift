import Glibc

/// The few calls of the system that measuring needs.
enum SystemCall {
    /// An error of the system in words.
    static func text(_ code: Int32) -> String { String(cString: strerror(code)) }

    /// A monotonic time in nanoseconds.
    static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// The CPU time that a process has used in nanoseconds, of threads that have ended as well.
    static func cpuNanoseconds(of process: pid_t) throws(BenchmarkFailure) -> Int64 {
        var clock = clockid_t()
        let code = clock_getcpuclockid(process, &clock)
        guard code == 0 else { throw .system("clock_getcpuclockid", code) }
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else { throw .system("clock_gettime", errno) }
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// The CPU time of this process in nanoseconds.
    static func ownCPUNanoseconds() throws(BenchmarkFailure) -> Int64 { try cpuNanoseconds(of: getpid()) }

    /// Waits until a moment of the monotonic time.
    static func wait(until moment: Int64) {
        var time = timespec(tv_sec: Int(moment / 1_000_000_000), tv_nsec: Int(moment % 1_000_000_000))
        while clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil) == EINTR {}
    }

    /// The content of a small file; of `/proc`, whose files have no size.
    static func contents(of path: String) throws(BenchmarkFailure) -> String {
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

    /// Removes a file.
    static func remove(_ path: String) throws(BenchmarkFailure) {
        guard unlink(path) == 0 else { throw .system("removing \(path)", errno) }
    }

    /// The names in a folder, without `.` and `..`.
    static func names(in folder: String) throws(BenchmarkFailure) -> [String] {
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
