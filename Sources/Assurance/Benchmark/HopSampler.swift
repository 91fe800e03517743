import Glibc

/// Takes samples of what a server's threads are doing, with Linux's `perf`, and tells the hops apart.
///
/// A sample counts for the innermost stage on its stack; on threads that belong to one stage, for that.
struct HopSampler {
    /// Samples a second of CPU; no divisor of the timers' rates, so that nothing is seen in step.
    private static let rate = "997"

    private let process: pid_t
    private let output: Int32
    private let file: String

    /// Starts sampling a process; `nil` where the machine has no `perf`.
    init?(of server: pid_t, in folder: WorkFolder) {
        file = folder.path + "/perf.data"
        let arguments = [
            "perf", "record", "--quiet", "-e", "cpu-clock", "-F", Self.rate, "-g", "-p", "\(server)", "-o", file,
        ]
        do {
            (process, output) = try ChildProcess.start(arguments, reading: STDERR_FILENO)
        } catch {
            // Mostly not installed: the figures stand without.
            return nil
        }
    }

    /// Ends sampling; how many samples each hop has, none where `perf` may not look at the server.
    func stop() async throws -> [Hop: Int] {
        let (process, output, file) = (process, output, file)
        return try await LoadThreads.run {
            kill(process, SIGINT)
            try Self.read(output) { _ in }
            _ = ChildProcess.wait(for: process)
            guard access(file, R_OK) == 0 else { return [:] }
            let script = ["perf", "script", "-i", file, "-F", "comm,ip,sym"]
            let (reader, text) = try ChildProcess.start(script, reading: STDOUT_FILENO)
            var counter = Counter()
            try Self.read(text) { counter.take($0) }
            _ = ChildProcess.wait(for: reader)
            counter.endSample()
            return counter.samples
        }
    }

    /// Reads a pipe to its end, line by line.
    private static func read(_ descriptor: Int32, _ line: (ArraySlice<UInt8>) -> Void) throws(BenchmarkFailure) {
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256 << 10)
        var rest: [UInt8] = []
        while true {
            let count = Glibc.read(descriptor, &bytes, bytes.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .system("reading from perf", errno) }
            if count == 0 { return }
            rest += bytes[..<count]
            var start = 0
            while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
                line(rest[start..<end])
                start = end + 1
            }
            rest.removeSubrange(..<start)
        }
    }

    /// Counts samples: a line with the thread's name, one for each frame from the innermost on, an empty one.
    struct Counter {
        private(set) var samples: [Hop: Int] = [:]
        private var thread: Hop?
        private var innermost: Hop?
        private var isInside = false

        mutating func take(_ line: ArraySlice<UInt8>) {
            guard let first = line.first else { return endSample() }
            if first == UInt8(ascii: "\t") || first == UInt8(ascii: " ") {
                guard isInside, innermost == nil, thread == nil else { return }
                // An address in hexadecimal, then the function.
                let frame = line.drop { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") }
                innermost = Hop(symbol: frame.drop { $0 != UInt8(ascii: " ") }.dropFirst())
            } else {
                endSample()
                isInside = true
                let name = String(decoding: line, as: UTF8.self)
                thread = Hop(ThreadWork(threadName: String(name.prefix { $0 != " " })))
            }
        }

        /// The end of a sample, or of all.
        mutating func endSample() {
            if isInside { samples[thread ?? innermost ?? .other, default: 0] += 1 }
            (thread, innermost, isInside) = (nil, nil, false)
        }
    }
}
