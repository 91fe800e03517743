import Glibc

/// What a process has used of the machine so far, as Linux counts it.
struct ProcessAccount: Sendable {
    /// CPU of all its threads in nanoseconds, of those that have ended as well.
    var cpu: Int64
    /// CPU of the threads that live, by id: name and nanoseconds.
    var threads: [Int: (name: String, cpu: Int64)]
    /// Bytes that came from the disk itself.
    var diskReadBytes: Int
    /// Bytes of all reading calls but those of sockets, from the page cache as well.
    var readBytes: Int

    /// Reads the accounts of a process.
    init(of process: pid_t) throws(BenchmarkFailure) {
        cpu = try SystemCall.cpuNanoseconds(of: process)
        threads = [:]
        let folder = "/proc/\(process)/task"
        for name in try SystemCall.names(in: folder) {
            guard let id = Int(name), let thread = Self.thread("\(folder)/\(name)") else { continue }
            threads[id] = thread
        }
        let counters = try SystemCall.contents(of: "/proc/\(process)/io")
        diskReadBytes = Self.counter("read_bytes:", in: counters)
        readBytes = Self.counter("rchar:", in: counters)
    }

    /// A thread's name and CPU time; `nil` where it has ended meanwhile.
    private static func thread(_ folder: String) -> (name: String, cpu: Int64)? {
        do {
            let name = try SystemCall.contents(of: folder + "/comm").split(separator: "\n").first
            // Nanoseconds on a CPU, nanoseconds of waiting for one, time slices.
            let times = try SystemCall.contents(of: folder + "/schedstat").split(separator: " ")
            guard let name, let cpu = times.first.flatMap({ Int64($0) }) else { return nil }
            return (String(name), cpu)
        } catch {
            return nil
        }
    }

    private static func counter(_ name: String, in text: String) -> Int {
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            return Int(line.dropFirst(name.count).drop { !$0.isNumber }.prefix { $0.isNumber }) ?? 0
        }
        return 0
    }

    /// The CPU that each thread has used since an earlier account, added up by what the threads do.
    func cpuByWork(since earlier: ProcessAccount) -> [ThreadWork: Int64] {
        var sums: [ThreadWork: Int64] = [:]
        for (id, thread) in threads {
            sums[ThreadWork(threadName: thread.name), default: 0] += thread.cpu - (earlier.threads[id]?.cpu ?? 0)
        }
        return sums
    }

    /// The memory of a process that is resident, in bytes.
    static func residentMemory(of process: pid_t) throws(BenchmarkFailure) -> Int {
        1024 * counter("VmRSS:", in: try SystemCall.contents(of: "/proc/\(process)/status"))
    }
}
