import Commands
import LoadTools

/// One repetition of ``Abuse`` on one server: the devices alone, then during the abuse.
struct AbuseRun {
    struct Found {
        /// Of each owner.
        var alone: [WellBehavedDevices.Times]
        var abused: [WellBehavedDevices.Times]
        var counts: [AbuseKind: AbusiveConnections.Count]
        /// The highest resident memory of the server in bytes, before the abuse and after it.
        var memory: (before: Int, after: Int)
        /// During the abuse.
        var usage: Usage
        /// Rows that the devices have synced, and those on the server.
        var synced = 0
        var rows = 0
    }

    /// Nanoseconds for the threads to start, and for every poll to wait.
    private static let lead: Int64 = 500_000_000

    var devices: [WellBehavedDevices]
    let server: ServerProcess
    let seconds: Int

    mutating func measure(_ owner: AbusiveOwner, _ kinds: [AbuseKind], _ bar: ProgressBar) async throws -> Found {
        let port = server.port
        try await LoadThreads.run { try owner.prepare(port) }
        let (alone, _) = try await phase(nil)
        bar.advance()
        let before = try Meter.highestMemory(of: server.process)
        let meter = try server.meter()
        let (abused, counts) = try await phase(try owner.patterns(kinds))
        let usage = try meter.usage()
        bar.advance()
        var found = Found(
            alone: alone, abused: abused, counts: counts,
            memory: (before, try Meter.highestMemory(of: server.process)), usage: usage)
        found.synced = (alone + abused).reduce(0) { $0 + $1.batches } * WellBehavedDevices.batchSize
        for device in devices { found.rows += try await Drain.count(of: device.owner, on: server) }
        return found
    }

    private enum Outcome: Sendable {
        case synced(WellBehavedDevices)
        case polled
        case counts([AbuseKind: AbusiveConnections.Count])
    }

    /// Runs all devices at once, and the abuse where there is one.
    private mutating func phase(
        _ patterns: [AbusePattern]?
    ) async throws -> ([WellBehavedDevices.Times], [AbuseKind: AbusiveConnections.Count]) {
        let (port, devices) = (server.port, devices)
        let start = SystemCall.nanoseconds() + Self.lead
        let end = start + Int64(seconds) * 1_000_000_000
        let phases = devices.map { _ in WellBehavedDevices.Phase(start: start, end: end) }
        let results = try await LoadThreads.run(2 * devices.count + (patterns == nil ? 0 : 1)) { index in
            if let patterns, index == 2 * devices.count {
                return Outcome.counts(try AbusiveConnections(patterns, port: port).run(until: end))
            }
            var device = devices[index / 2]
            if index % 2 == 1 {
                try device.poll(phases[index / 2], port)
                return .polled
            }
            try device.sync(phases[index / 2], port)
            return .synced(device)
        }
        var counts: [AbuseKind: AbusiveConnections.Count] = [:]
        self.devices = []
        for result in results {
            switch result {
            case .synced(let device): self.devices.append(device)
            case .polled: break
            case .counts(let found): counts = found
            }
        }
        return (phases.map(\.times), counts)
    }
}
