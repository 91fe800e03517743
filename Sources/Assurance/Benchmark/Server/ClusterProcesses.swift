import Glibc
import LoadTools
import Postgres

/// The processes of brokers and database that run on this machine and that this user may inspect.
struct ClusterProcesses: Sendable {
    private let brokers: [pid_t]
    /// The parent of all sessions of Postgres.
    private let postmaster: pid_t?

    static let none = ClusterProcesses(brokers: [], postmaster: nil)

    static func find(_ cluster: Cluster?) async throws -> ClusterProcesses {
        guard let cluster else { return none }
        return try await LoadThreads.run {
            ClusterProcesses(brokers: brokers(of: cluster), postmaster: try postmaster(of: cluster))
        }
    }

    /// The CPU that they have used so far in nanoseconds; `nil` for those that are not found.
    func cpu() throws -> (brokers: Int64?, database: Int64?) {
        if brokers.isEmpty, postmaster == nil { return (nil, nil) }
        let processes = try ProcessStatus.all()
        func sum(_ roots: [pid_t]) -> Int64? {
            let known = roots.filter { processes[$0] != nil }
            return known.isEmpty ? nil : known.reduce(0) { $0 + ProcessStatus.familyCPU($1, in: processes) }
        }
        return (sum(brokers), sum(postmaster.map { [$0] } ?? []))
    }

    private static func brokers(of cluster: Cluster) -> [pid_t] {
        let local = cluster.brokers.split(separator: ",").filter {
            $0.hasPrefix("127.") || $0.hasPrefix("localhost:") || $0.hasPrefix("[::1]:")
        }
        return listeners(at: Set(local.compactMap { $0.split(separator: ":").last.flatMap { UInt16($0) } }))
    }

    private static func postmaster(of cluster: Cluster) throws -> pid_t? {
        guard cluster.parameters.isLocal else { return nil }
        return try cluster.session { connection in
            // The number may be one of another machine's or container's.
            guard let session = try ProcessStatus.all()[connection.backendID], session.name == "postgres" else {
                return nil
            }
            return session.parent
        }
    }

    /// The processes that listen at one of some ports; without those of other users, whose files cannot be read.
    static func listeners(at ports: Set<UInt16>) -> [pid_t] {
        let sockets = Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap { listeningSockets(at: ports, in: $0) })
        guard !sockets.isEmpty else { return [] }
        return names(in: "/proc").compactMap { pid_t($0) }.filter { process in
            names(in: "/proc/\(process)/fd").contains { descriptor in
                target(of: "/proc/\(process)/fd/\(descriptor)").map(sockets.contains) ?? false
            }
        }
    }

    /// The sockets of a table in `/proc/net` that listen, as links in `/proc/PID/fd` spell them.
    private static func listeningSockets(at ports: Set<UInt16>, in path: String) -> [String] {
        let text: String
        do {
            text = try SystemCall.contents(of: path)
        } catch {
            // A machine without that protocol.
            return []
        }
        return text.split(separator: "\n").dropFirst().compactMap { line in
            // Number, local address and port in hexadecimal, the remote's, state, six more, the inode.
            let fields = line.split(separator: " ")
            guard fields.count > 9, fields[3] == "0A", let port = fields[1].split(separator: ":").last,
                let number = UInt16(port, radix: 16), ports.contains(number)
            else { return nil }
            return "socket:[\(fields[9])]"
        }
    }

    /// The names in a folder of `/proc`; none where it is gone or may not be read.
    private static func names(in folder: String) -> [String] {
        do {
            return try SystemCall.names(in: folder)
        } catch {
            return []
        }
    }

    private static func target(of link: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = bytes.withUnsafeMutableBytes { buffer in
            readlink(link, buffer.baseAddress!.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }
}

struct ProcessStatus: Sendable {
    let name: String
    let parent: pid_t
    /// CPU of the process and of its children that have ended, in nanoseconds.
    let cpu: Int64

    static func all() throws(LoadFailure) -> [pid_t: ProcessStatus] {
        var processes: [pid_t: ProcessStatus] = [:]
        for name in try SystemCall.names(in: "/proc") {
            guard let process = pid_t(name) else { continue }
            do {
                processes[process] = ProcessStatus(try SystemCall.contents(of: "/proc/\(name)/stat"))
            } catch {
                // The process has ended meanwhile.
                continue
            }
        }
        return processes
    }

    /// CPU of a process and its children in nanoseconds.
    static func familyCPU(_ root: pid_t, in processes: [pid_t: ProcessStatus]) -> Int64 {
        processes.reduce(0) { $0 + ($1.key == root || $1.value.parent == root ? $1.value.cpu : 0) }
    }

    init?(_ line: String) {
        // The name is in parentheses and may contain some.
        guard let open = line.firstIndex(of: "("), let close = line.lastIndex(of: ")"), open < close else { return nil }
        name = String(line[line.index(after: open)..<close])
        let fields = line[line.index(after: close)...].split(separator: " ")
        // After the name: state, parent, 9 more, then utime, stime, cutime, cstime.
        guard fields.count > 14, let parent = pid_t(fields[1]) else { return nil }
        self.parent = parent
        cpu = fields[11...14].reduce(0) { $0 + (Int64($1) ?? 0) } * Meter.tick
    }
}
