import Glibc

/// How busy the whole machine was, so that a figure says how far it can be trusted.
struct MachineAccount: Sendable {
    /// The CPU time that was used on all processors in nanoseconds.
    private let busy: Int64
    private let ours: Int64
    private let time: Int64

    /// Looks at the machine, and at how much of that was this process's, the server's, and that of brokers and database.
    init(_ server: ServerProcess) throws {
        let rest = try server.cpu() - SystemCall.cpuNanoseconds(of: server.process)
        try self.init(server: server.process, others: server.neighbours.cpu().sum + rest)
    }

    /// Looks at the machine, and at how much of that was this process's and the server's.
    ///
    /// - Parameter others: CPU of other processes that take part, in nanoseconds.
    init(server: pid_t?, others: Int64 = 0) throws(BenchmarkFailure) {
        let first = try SystemCall.contents(of: "/proc/stat").split(separator: "\n").first ?? ""
        // user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
        let ticks = first.split(separator: " ").dropFirst().prefix(8).map { Int64($0) ?? 0 }
        let tick = 1_000_000_000 / Int64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        busy = ticks.enumerated().reduce(0) { $1.offset == 3 || $1.offset == 4 ? $0 : $0 + $1.element } * tick
        var ours = try SystemCall.ownCPUNanoseconds() + others
        if let server { ours += try SystemCall.cpuNanoseconds(of: server) }
        self.ours = ours
        time = SystemCall.nanoseconds()
    }

    /// The share of all processors that went to other processes since an earlier look, from 0 to 1.
    func othersShare(since earlier: MachineAccount) -> Double {
        let all = Double(time - earlier.time) * Double(Self.processors)
        let others = Double(busy - earlier.busy - (ours - earlier.ours))
        return all <= 0 ? 0 : min(1, max(0, others / all))
    }

    /// The processors that are there.
    static var processors: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
