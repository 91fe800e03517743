import Glibc
import LoadTools
import WeirClient

/// What an app costs whose client library has everything and waits, with its event stream open.
///
/// The server sends its keep-alive comments once an hour, and ends connections without a request early, so that what is left is what the
/// library needs.
struct ClientIdle: Figure {
    let name = "client-idle"
    let title = "an app that has everything and waits for what others change"

    private static let rows = 10
    private static let flags = ["--gateway.keep-alive", "1h", "--gateway.idle-timeout", "5s"]

    func measure(_ bench: Bench) async throws -> FigureResult {
        let seconds = bench.scale.pick(1, 30, 120)
        // After a write to the file it is looked at for some seconds, since a commit may take long.
        let lead = bench.scale.pick(0, 12, 12)
        let account = Owners.spread(1)[0]
        return try await bench.withServer(name, in: nil, flags: Self.flags) { server in
            let path = try bench.folder.write("", to: "client-idle-file")
            let alone = try await Self.idle(seconds)
            let weir = try await ClientFirstSync.device(path, account, server)
            try await weir.start()
            try await weir.firstSync()
            var devices = Devices(owners: [account], batchSize: Self.rows)
            // Rows arrive at once where the event stream is open.
            try await Self.receive(Self.rows, by: weir, &devices, bench, server)
            let waiting = try await Self.idle(seconds, after: lead)
            let connections = try Self.connections(to: server.port)
            try await Self.receive(2 * Self.rows, by: weir, &devices, bench, server)
            await weir.close()
            return FigureResult(
                measures: [
                    Measure("connections", Double(connections), target: .atMost(1)),
                    // On Linux libdispatch wakes up once a second by itself.
                    Measure("wake_ups", Double(waiting.wakeUps), target: .atMost(Double(alone.wakeUps + 10))),
                    Measure("wake_ups_alone", Double(alone.wakeUps)),
                    Measure("cpu", Double(waiting.cpu) / 1000, "us"),
                    Measure("cpu_alone", Double(alone.cpu) / 1000, "us"),
                    Measure("time", Double(seconds), "s"),
                ],
                checks: [Check(name: "rows", expected: 2 * Self.rows, found: try ClientFirstSync.count(in: path))])
        }
    }

    /// Another device uploads rows; returns when the app has so many.
    private static func receive(
        _ count: Int, by weir: Weir, _ devices: inout Devices, _ bench: Bench, _ server: ServerProcess
    ) async throws {
        let plans = try await devices.plan(batches: 1).plans
        try await bench.showing("client-idle: loading", total: rows, unit: "changes") { bar in
            _ = try await Upload.run(plans, to: server, bar)
        }
        for try await rows in weir.observe("SELECT count(*) FROM note") {
            if case .integer(let found)? = rows.first?.values.first, found >= count { return }
        }
    }

    /// What this process does in so many seconds.
    private static func idle(_ seconds: Int, after lead: Int = 0) async throws -> Idleness {
        try await LoadThreads.run {
            func wait(_ seconds: Int) {
                SystemCall.wait(until: SystemCall.nanoseconds() + Int64(seconds) * 1_000_000_000)
            }
            wait(lead)
            let start = try Idleness()
            wait(seconds)
            return try Idleness(since: start)
        }
    }

    /// How many connections to a port of this machine are open.
    private static func connections(to port: UInt16) throws -> Int {
        let digits = String(port, radix: 16, uppercase: true)
        let end = ":" + String(repeating: "0", count: 4 - digits.count) + digits
        return try SystemCall.contents(of: "/proc/self/net/tcp").split(separator: "\n").count { line in
            // The number of the line, the two addresses, and the state, of which 01 is established.
            let fields = line.split(separator: " ")
            return fields.count > 3 && fields[2].hasSuffix(end) && fields[3] == "01"
        }
    }
}

/// What the threads of this process have done.
private struct Idleness: Sendable {
    /// How often each thread slept until something woke it.
    private let wakeUpsOfThreads: [String: Int]
    private let totalCPU: Int64
    /// Since the beginning, of threads that are still there, but for the one that measures, which is woken by the end.
    private(set) var wakeUps = 0
    /// Since the beginning, in nanoseconds.
    private(set) var cpu: Int64 = 0

    init() throws {
        var wakeUps: [String: Int] = [:]
        for thread in try SystemCall.names(in: "/proc/self/task") {
            do {
                let status = try SystemCall.contents(of: "/proc/self/task/\(thread)/status")
                let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
                wakeUps[thread] = line.flatMap { Int($0.drop { !$0.isNumber }) } ?? 0
            } catch {
                // It has ended since it was listed.
            }
        }
        wakeUpsOfThreads = wakeUps
        totalCPU = try SystemCall.cpuNanoseconds(of: getpid())
    }

    init(since start: Idleness) throws {
        self = try Idleness()
        wakeUps = wakeUpsOfThreads.reduce(-1) { $0 + $1.value - (start.wakeUpsOfThreads[$1.key] ?? 0) }
        cpu = totalCPU - start.totalCPU
    }
}
