import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A `weir run` of its own, the same program as this one, with its data in a folder of the measurement.
final class ServerProcess: Sendable {
    let process: pid_t
    /// Where it listens on 127.0.0.1.
    let port: UInt16
    /// Its data.
    let folder: String
    private let hasEnded = Mutex(false)
    private let errors: LogLines
    private let interruption: Interruption

    /// Starts a server with an empty folder and returns when it is ready for requests.
    static func start(
        in folder: WorkFolder, name: String, interruption: Interruption
    ) async throws -> ServerProcess {
        let schema = try folder.write(Workload.schema, to: name + ".yaml")
        let data = folder.path + "/" + name
        let arguments = [
            "weir", "run", "--schema", schema, "--data", data, "--address", "127.0.0.1:0", "--log-format", "json",
            // All load comes from one address.
            "--gateway.max-connections-per-address", "0",
            // Several may run beside each other, and beside one that serves.
            "--operations.address", "off",
        ]
        let (process, errors) = try interruption.start { () throws(BenchmarkFailure) in
            try ChildProcess.start(arguments, at: "/proc/self/exe", reading: STDERR_FILENO)
        }
        let lines = LogLines(errors)
        guard let port = try await LoadThreads.run({ lines.readPort() }) else {
            interruption.forget(process)
            _ = ChildProcess.wait(for: process)
            throw BenchmarkFailure("the server did not start:\n" + lines.newest.joined(separator: "\n"))
        }
        lines.readOn()
        return ServerProcess(
            process: process, port: port, folder: data, errors: lines, interruption: interruption)
    }

    private init(
        process: pid_t, port: UInt16, folder: String, errors: LogLines, interruption: Interruption
    ) {
        self.interruption = interruption
        self.process = process
        self.port = port
        self.folder = folder
        self.errors = errors
    }

    deinit {
        // Not stopped: something threw, and nobody is to be left behind.
        if !hasEnded.withLock({ $0 }) {
            interruption.forget(process)
            kill(process, SIGKILL)
            _ = ChildProcess.wait(for: process)
        }
    }

    /// Asks the server to stop, waits until it has and removes its data.
    func stop() async throws {
        interruption.forget(process)
        kill(process, SIGTERM)
        let process = process
        let status = try await LoadThreads.run { ChildProcess.wait(for: process) }
        hasEnded.withLock { $0 = true }
        guard status == 0 else {
            throw BenchmarkFailure("the server failed:\n" + errors.newest.joined(separator: "\n"))
        }
        try WorkFolder.remove(folder)
    }
}

/// The log of a server: read to its end, so that the server never waits for its reader.
private final class LogLines: Sendable {
    /// What is kept to explain a failure.
    private static let kept = 50

    private struct State {
        var lines: [String] = []
        var rest: [UInt8] = []
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    var newest: [String] { state.withLock { $0.lines } }

    /// Reads until the server says where it listens; `nil` where it ended without.
    func readPort() -> UInt16? {
        while true {
            if let port = newest.lazy.compactMap(Self.port).first { return port }
            guard read() else { return nil }
        }
    }

    /// Reads what comes later on a thread that ends with the server.
    func readOn() {
        let held = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { context in
                let lines = Unmanaged<LogLines>.fromOpaque(context!).takeRetainedValue()
                while lines.read() {}
                return nil
            }, held.toOpaque())
        guard code == 0 else { return held.release() }
        pthread_detach(thread)
    }

    private func read() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        if count < 0, errno == EINTR { return true }
        guard count > 0 else { return false }
        state.withLock { state in
            state.rest += bytes[..<count]
            while let end = state.rest.firstIndex(of: UInt8(ascii: "\n")) {
                state.lines.append(String(decoding: state.rest[..<end], as: UTF8.self))
                state.rest.removeSubrange(...end)
            }
            if state.lines.count > Self.kept { state.lines.removeFirst(state.lines.count - Self.kept) }
        }
        return true
    }

    private static func port(in line: String) -> UInt16? {
        let bytes = Array(line.utf8)
        guard let place = bytes.firstRange(of: #""address":"127.0.0.1:"#, from: 0) else { return nil }
        return UInt16(exactly: bytes.number(from: place.upperBound))
    }
}
