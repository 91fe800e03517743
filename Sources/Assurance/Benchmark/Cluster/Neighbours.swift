import Glibc
import Postgres

/// The processes of brokers and database that run on this machine and may be looked at, so that their CPU can be told apart.
struct Neighbours: Sendable {
    /// What they have used so far, in nanoseconds; `nil` where they are not here.
    struct CPU: Sendable {
        var brokers: Int64?
        var database: Int64?

        /// What was used since an earlier look.
        func since(_ earlier: CPU) -> CPU {
            func difference(_ path: KeyPath<CPU, Int64?>) -> Int64? {
                guard let now = self[keyPath: path], let before = earlier[keyPath: path] else { return nil }
                return now - before
            }
            return CPU(brokers: difference(\.brokers), database: difference(\.database))
        }

        var sum: Int64 { (brokers ?? 0) + (database ?? 0) }
    }

    private let brokers: [pid_t]
    /// Postgres's first process, the parent of all sessions.
    private let postmaster: pid_t?

    /// None, for a server without.
    private static let none = Neighbours(brokers: [], postmaster: nil)

    /// Looks for the processes of a cluster.
    static func find(_ cluster: Cluster?) async throws -> Neighbours {
        guard let cluster else { return none }
        return try await LoadThreads.run {
            Neighbours(brokers: Self.brokers(of: cluster), postmaster: try Self.postmaster(of: cluster))
        }
    }

    /// How much CPU they have used.
    func cpu() throws -> CPU {
        let processes = try ProcessTicks.all()
        func sum(_ roots: [pid_t]) -> Int64? {
            let known = roots.filter { processes[$0] != nil }
            guard !known.isEmpty else { return nil }
            return known.reduce(0) { $0 + ProcessTicks.family($1, in: processes) }
        }
        return CPU(brokers: sum(brokers), database: sum(postmaster.map { [$0] } ?? []))
    }

    /// Whoever listens at the brokers' ports on this machine.
    private static func brokers(of cluster: Cluster) -> [pid_t] {
        let local = cluster.brokers.split(separator: ",").filter {
            $0.hasPrefix("127.") || $0.hasPrefix("localhost:") || $0.hasPrefix("[::1]:")
        }
        let ports = Set(local.compactMap { $0.split(separator: ":").last.flatMap { UInt16($0) } })
        return ports.isEmpty ? [] : Listeners.processes(at: ports)
    }

    private static func postmaster(of cluster: Cluster) throws -> pid_t? {
        guard cluster.parameters.isLocal else { return nil }
        return try cluster.session { connection in
            // The number may be one of another machine's or container's.
            guard let session = try ProcessTicks.all()[connection.backendID], session.name == "postgres" else {
                return nil
            }
            return session.parent
        }
    }
}

/// What Linux counts of a process and its children.
struct ProcessTicks: Sendable {
    let name: String
    let parent: pid_t
    /// CPU in nanoseconds, of children that have ended, too.
    let cpu: Int64

    /// Of all processes.
    static func all() throws(BenchmarkFailure) -> [pid_t: ProcessTicks] {
        var processes: [pid_t: ProcessTicks] = [:]
        for name in try SystemCall.names(in: "/proc") {
            guard let process = pid_t(name) else { continue }
            do {
                processes[process] = ProcessTicks(try SystemCall.contents(of: "/proc/\(name)/stat"))
            } catch {
                // It has ended meanwhile.
                continue
            }
        }
        return processes
    }

    /// CPU of a process and its children in nanoseconds.
    static func family(_ root: pid_t, in processes: [pid_t: ProcessTicks]) -> Int64 {
        processes.reduce(0) { $0 + ($1.key == root || $1.value.parent == root ? $1.value.cpu : 0) }
    }

    /// Reads a line of `/proc/…/stat`.
    init?(_ line: String) {
        // The name stands in parentheses and may hold some.
        guard let open = line.firstIndex(of: "("), let close = line.lastIndex(of: ")"), open < close else { return nil }
        name = String(line[line.index(after: open)..<close])
        let fields = line[line.index(after: close)...].split(separator: " ")
        // Behind the name: state, parent, 9 more, then utime, stime, cutime, cstime.
        guard fields.count > 14, let parent = pid_t(fields[1]) else { return nil }
        self.parent = parent
        let tick = 1_000_000_000 / Int64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        cpu = fields[11...14].reduce(0) { $0 + (Int64($1) ?? 0) } * tick
    }
}

extension Neighbours {
    /// What a change cost brokers and database in each repetition, where that is known.
    static func measures(_ repetitions: [CPU], changes: Int) -> [Measure] {
        let named: [(String, KeyPath<CPU, Int64?>)] = [
            ("brokers_cpu_per_change", \.brokers), ("database_cpu_per_change", \.database),
        ]
        return named.compactMap { name, path in
            let known = repetitions.compactMap { $0[keyPath: path] }
            guard !known.isEmpty else { return nil }
            return Measure(name, Samples(known.map { Double($0) / 1000 / Double(changes) }), "us")
        }
    }
}
