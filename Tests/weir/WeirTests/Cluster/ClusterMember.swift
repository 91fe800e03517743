import Foundation
import ServerShell
import Synchronization
import Testing

/// A process of a cluster, one role or all, which can be stopped and restarted with the same port and folder.
final class ClusterMember: Sendable {
    /// What a process does.
    enum Role: String, Sendable {
        case gateway, ingest, ordering, fanout
        /// All of them.
        case run

        var takesRequests: Bool { self == .gateway || self == .run }
        var keepsStreams: Bool { self == .fanout || self == .run }
    }

    let role: Role
    /// The port of a gateway for devices, or of a fan-out for gateways; kept over restarts.
    let port: UInt16
    /// The folder of the streams.
    let data: String
    private let cluster: WeirCluster
    private let arguments: [String]
    private let current: Mutex<ProgramProcess>

    fileprivate init(_ role: Role, named name: String, in cluster: WeirCluster, _ settings: [String]) throws {
        self.role = role
        self.cluster = cluster
        port = UInt16(try FreePort.find())
        data = cluster.folder.path + "/" + name
        var arguments = [role.rawValue, "--config", "weir.yaml"] + settings
        if role.takesRequests { arguments += ["--address", "127.0.0.1:\(port)"] }
        if role == .fanout { arguments += ["--link.address", "127.0.0.1:\(port)"] }
        if role.keepsStreams { arguments += ["--data", data] }
        self.arguments = arguments
        current = Mutex(try ProgramProcess(arguments, in: cluster.folder))
    }

    /// The current process, or the last one.
    var process: ProgramProcess { current.withLock(\.self) }

    /// Starts the process again after its end.
    func startAgain() throws {
        let process = try ProgramProcess(arguments, in: cluster.folder)
        current.withLock { $0 = process }
    }

    /// Waits until the process is ready.
    func untilReady() async throws {
        let process = process
        guard await process.hasLogged("Every service is ready") else {
            throw StartFailure(
                description: "weir \(role) did not start:\n" + process.log.joined(separator: "\n"))
        }
        if role.takesRequests { cluster.gateways.add(port) }
    }

    /// Sends SIGKILL and waits for the end.
    func kill() async {
        if role.takesRequests { cluster.gateways.remove(port) }
        #expect(await process.kill() == SIGKILL)
    }

    /// Sends SIGTERM and waits for the end.
    func stop() async {
        if role.takesRequests { cluster.gateways.remove(port) }
        let process = process
        #expect(await process.stop() == 0, "\(role): \(Self.ending(of: process.log).joined(separator: "\n"))")
    }

    /// The report of a crash, or the last lines.
    private static func ending(of log: [String]) -> ArraySlice<String> {
        let crash = log.firstIndex { line in
            ["Fatal error", "Assertion", "Program crashed"].contains { line.contains($0) }
        }
        return crash.map { log[$0...].prefix(60) } ?? log.suffix(5)
    }
}

extension WeirCluster {
    /// Starts a process, and does not wait for it.
    func launch(_ role: ClusterMember.Role, named name: String, _ settings: [String] = []) throws -> ClusterMember {
        try ClusterMember(role, named: name, in: self, settings)
    }

    /// Starts a process and waits until it is ready.
    func start(_ role: ClusterMember.Role, named name: String, _ settings: [String] = []) async throws -> ClusterMember
    {
        let member = try launch(role, named: name, settings)
        try await member.untilReady()
        return member
    }
}

extension WeirCluster {
    /// One process of every role, ready for requests; the gateway is first.
    func startOneOfEach() async throws -> [ClusterMember] { try await start(ofEach: 1) }

    /// Two processes of every role, ready for requests.
    ///
    /// - Parameter settings: further flags of the processes of ordering and ingest.
    func startTwoOfEach(_ settings: [String] = []) async throws -> [ClusterMember] {
        try await start(ofEach: 2, settings)
    }

    private func start(ofEach count: Int, _ settings: [String] = []) async throws -> [ClusterMember] {
        var members: [ClusterMember] = []
        let fanOuts = try (1...count).map { try launch(.fanout, named: "fanout-\($0)") }
        let addresses = fanOuts.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        for number in 1...count {
            members.append(try launch(.gateway, named: "gateway-\(number)", ["--link.fan-outs", addresses]))
        }
        for role in [ClusterMember.Role.ordering, .ingest] {
            for number in 1...count {
                let name = "\(role)-\(number)"
                members.append(try launch(role, named: name, ["--kafka.instance-name", name] + settings))
            }
        }
        members += fanOuts
        for member in members { try await member.untilReady() }
        // Gateways reach the fan-outs, whose streams are open.
        for member in members { try await member.untilReadyAgain() }
        return members
    }
}

extension ClusterMember {
    /// Why the process is not ready, by its operations port; `nil` where it is.
    func unreadiness() async throws -> String? {
        guard let port = await process.port(of: .operations) else {
            throw StartFailure(description: process.log.joined(separator: "\n"))
        }
        let answer = try await DeviceClient(port: port, headers: [:]).get("/readyz")
        return answer.status == 200 ? nil : String(decoding: answer.body, as: UTF8.self)
    }

    /// Polls the operations port until the process is not ready for a reason that contains these words.
    func untilUnready(_ words: String = "") async throws {
        while true {
            try Task.checkCancellation()
            if let reason = try await unreadiness(), words.isEmpty || reason.contains(words) { return }
        }
    }

    /// Polls the operations port until the process is ready.
    func untilReadyAgain() async throws {
        while try await unreadiness() != nil { try Task.checkCancellation() }
    }

    /// Waits for a log line that contains some words.
    func expectLogged(_ words: String) async {
        #expect(await process.hasLogged(words), "\(role): \(process.log.suffix(5).joined(separator: "\n"))")
    }
}
