import Glibc

/// Resource usage of this process.
package struct ProcessReadings: Sendable {
    /// User and system time, in seconds.
    package let cpuSeconds: Double
    /// `nil` if it cannot be read.
    package let residentBytes: Int?
    /// `nil` if they cannot be counted.
    package let openDescriptors: Int?
    package let maximumDescriptors: Int?

    /// Makes some system calls and reads files of `/proc`.
    package init() {
        var usage = rusage()
        // Cannot fail for the process itself and a valid address.
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        cpuSeconds = Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime)
        residentBytes = Self.residentPages().map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) }
        openDescriptors = Self.descriptorCount()
        maximumDescriptors = Self.descriptorLimit()
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }

    /// The second number of `/proc/self/statm`.
    private static func residentPages() -> Int? {
        let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return nil }
        let numbers = buffer[..<count].split(separator: UInt8(ascii: " "))
        return numbers.count > 1 ? Int(String(decoding: numbers[1], as: UTF8.self)) : nil
    }

    /// The entries of `/proc/self/fd`, without the one that reading it takes.
    private static func descriptorCount() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while let entry = readdir(folder) {
            let isDot = withUnsafeBytes(of: &entry.pointee.d_name) { $0[0] == UInt8(ascii: ".") }
            if !isDot { count += 1 }
        }
        return count - 1
    }

    private static func descriptorLimit() -> Int? {
        var limit = rlimit()
        let result = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard result == 0 else { return nil }
        return Int(clamping: limit.rlim_cur)
    }
}
