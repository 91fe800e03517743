import Glibc
import LoadTools

/// Measures what processes, and the machine around them, use from the moment it is made.
struct Meter: Sendable {
    private let processes: [pid_t]
    private let cluster: ClusterProcesses
    private let start: Reading

    /// - Parameter cluster: brokers and database, whose CPU is the server's as well.
    init(_ processes: [pid_t], _ cluster: ClusterProcesses = .none) throws {
        self.processes = processes
        self.cluster = cluster
        start = try Reading(processes, cluster)
    }

    /// What was used since the meter was made.
    func usage() throws -> Usage {
        let now = try Reading(processes, cluster)
        func difference(_ path: KeyPath<Reading, Int64?>) -> Int64? {
            guard let used = now[keyPath: path], let before = start[keyPath: path] else { return nil }
            return used - before
        }
        let capacity = Double(now.time - start.time) * Double(Self.processors)
        let others = Double(now.busy - start.busy - (now.ours - start.ours))
        return Usage(
            cpu: zip(now.cpu, start.cpu).map { $0 - $1 }, loadCPU: now.loadCPU - start.loadCPU,
            brokersCPU: difference(\.brokersCPU), databaseCPU: difference(\.databaseCPU),
            diskReadBytes: now.diskReadBytes - start.diskReadBytes, readBytes: now.readBytes - start.readBytes,
            othersShare: capacity <= 0 ? 0 : min(1, max(0, others / capacity)))
    }

    /// The resident memory of a process in bytes.
    static func residentMemory(of process: pid_t) throws(LoadFailure) -> Int {
        1024 * counter("VmRSS:", in: try SystemCall.contents(of: "/proc/\(process)/status"))
    }

    /// The highest resident memory that a process has had, in bytes.
    static func highestMemory(of process: pid_t) throws(LoadFailure) -> Int {
        1024 * counter("VmHWM:", in: try SystemCall.contents(of: "/proc/\(process)/status"))
    }

    static var processors: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Nanoseconds of a tick, the unit of `/proc/stat` and `/proc/PID/stat`.
    static var tick: Int64 { 1_000_000_000 / Int64(max(1, sysconf(Int32(_SC_CLK_TCK)))) }

    /// Counters at one moment; times in nanoseconds.
    private struct Reading {
        let time: Int64
        /// CPU of all processes of the machine.
        let busy: Int64
        let cpu: [Int64]
        let loadCPU: Int64
        let brokersCPU: Int64?
        let databaseCPU: Int64?
        let diskReadBytes: Int
        let readBytes: Int

        /// CPU of everything that takes part in the measurement.
        var ours: Int64 { cpu.reduce(loadCPU + (brokersCPU ?? 0) + (databaseCPU ?? 0), +) }

        init(_ processes: [pid_t], _ cluster: ClusterProcesses) throws {
            let first = try SystemCall.contents(of: "/proc/stat").split(separator: "\n").first ?? ""
            // user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
            let ticks = first.split(separator: " ").dropFirst().prefix(8).map { Int64($0) ?? 0 }
            busy = ticks.enumerated().reduce(0) { $1.offset == 3 || $1.offset == 4 ? $0 : $0 + $1.element } * Meter.tick
            cpu = try processes.map { try SystemCall.cpuNanoseconds(of: $0) }
            loadCPU = try SystemCall.cpuNanoseconds(of: getpid())
            (brokersCPU, databaseCPU) = try cluster.cpu()
            let io = try processes.map { try SystemCall.contents(of: "/proc/\($0)/io") }
            diskReadBytes = io.reduce(0) { $0 + Meter.counter("read_bytes:", in: $1) }
            readBytes = io.reduce(0) { $0 + Meter.counter("rchar:", in: $1) }
            time = SystemCall.nanoseconds()
        }
    }

    private static func counter(_ name: String, in text: String) -> Int {
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            return Int(line.dropFirst(name.count).drop { !$0.isNumber }.prefix { $0.isNumber }) ?? 0
        }
        return 0
    }
}

/// What was used between two moments; CPU in nanoseconds.
struct Usage: Sendable {
    /// Of each process of the server, including threads that have ended.
    let cpu: [Int64]
    /// Of this process, which makes the load.
    let loadCPU: Int64
    /// Of the brokers and of Postgres with its sessions; `nil` where they do not run on this machine.
    let brokersCPU: Int64?
    let databaseCPU: Int64?
    /// Bytes that the server read from the disk itself.
    let diskReadBytes: Int
    /// Bytes that the server read with any call but those of sockets, from the page cache as well.
    let readBytes: Int
    /// The share of all processors that other processes had, from 0 to 1.
    let othersShare: Double

    var serverCPU: Int64 { cpu.reduce(0, +) }
}
