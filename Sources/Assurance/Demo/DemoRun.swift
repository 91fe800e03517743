import Commands
import EmbeddedPipeline
import Foundation
import LocalTables
import SchemaFile
import WeirClient
import WeirTesting

/// A demonstration from its start to the comparison at its end.
struct DemoRun: Sendable {
    private let settings: DemoSettings
    private let folder: URL
    private let url: URL
    private let login: Login
    private let server: Server
    private let tables: LocalTables

    /// Runs it; whether all devices are equal.
    static func play(_ settings: DemoSettings, _ stop: StopRequest) async throws -> Bool {
        let folder =
            settings.folder.map { URL(fileURLWithPath: $0, isDirectory: true) }
            ?? FileManager.default.temporaryDirectory.appendingPathComponent("weir-demo-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        Output.complain("seed \(settings.seed), files in \(folder.path)")
        let isEqual: Bool
        if let url = settings.server {
            isEqual = try await DemoRun(settings, folder, url).run(stop)
        } else {
            let declared = try SchemaFile.tables(from: Array(settings.schema.utf8))
            let pipeline = try await RunningPipeline.start(
                in: folder.appendingPathComponent("server").path, declaring: declared, port: 0)
            guard case .address(let address) = pipeline.access, let url = URL(string: "http://\(address)/") else {
                preconditionFailure("the pipeline was started with a port")
            }
            Output.complain("the pipeline runs in this process and listens at \(url)")
            do {
                isEqual = try await DemoRun(settings, folder, url).run(stop)
            } catch {
                try await pipeline.stop()
                throw error
            }
            try await pipeline.stop()
        }
        if isEqual, settings.folder == nil { try FileManager.default.removeItem(at: folder) }
        return isEqual
    }

    private init(_ settings: DemoSettings, _ folder: URL, _ url: URL) async throws {
        self.settings = settings
        self.folder = folder
        self.url = url
        login = Login(account: settings.account, token: settings.token)
        let credentials: Credentials =
            settings.token.map { .token($0) } ?? .unauthenticated(syncID: settings.account, links: [:])
        server = Server(url: url, credentials: credentials, transport: URLSessionTransport())
        tables = try LocalTables(schema: try await server.send("GET", "v1/schema", as: try await server.caller()).body)
    }

    private func run(_ stop: StopRequest) async throws -> Bool {
        var devices: [DemoDevice] = []
        for number in 1...settings.devices {
            devices.append(DemoDevice(number: number, device: try await open("device-\(number)")))
        }
        let result: [String]
        do {
            try await edit(devices, stop)
            result = try await settle(devices.map(\.device))
        } catch {
            for device in devices { await device.device.close() }
            throw error
        }
        let rows = try await devices[0].device.content().count
        for device in devices { await device.device.close() }
        if result.isEmpty {
            Output.write("Equal: \(devices.count) devices and the server have the same \(rows) rows.")
        } else {
            Output.write("DIFFERENT:")
            for line in result { Output.write("  \(line)") }
            Output.write("The files are kept in \(folder.path).")
        }
        return result.isEmpty
    }

    private func open(_ name: String) async throws -> TestDevice {
        let tables = tables
        return try await TestDevice(
            name, login, at: url, file: folder.appendingPathComponent("\(name).sqlite"), tables: tables.names,
            network: TestNetwork(URLSessionTransport()), random: TestRandom(seed: .random(in: 0 ... .max))
        ) { database in
            // Users delete parents before children.
            try database.execute("PRAGMA foreign_keys = OFF")
            try database.transaction { try tables.create(in: database) }
        }
    }

    /// Lets all devices edit until the time is over.
    private func edit(_ devices: [DemoDevice], _ stop: StopRequest) async throws {
        let (latencies, head, view) = (LatencyBook(), StreamHead(), DemoView())
        for device in devices { try await device.device.weir.start() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices {
                group.addTask { try await device.edit(tables, settings.seed, latencies) }
                group.addTask { try await device.observe(tables, latencies) }
            }
            group.addTask { await head.follow(server) }
            group.addTask {
                let end = ContinuousClock.now + .seconds(settings.seconds)
                while true {
                    let isStopped = await stop.wait(within: max(.zero, min(end - .now, DemoView.interval)))
                    let left = end - .now
                    var lines: [DemoView.Line] = []
                    for device in devices { lines.append(try await device.line()) }
                    view.show(
                        DemoView.Snapshot(
                            lines: lines, left: max(0, Int(left.components.seconds)), edits: latencies.edits,
                            head: head.value, latency: latencies.summary))
                    // The end of this task is that of all others.
                    if isStopped || left <= .zero { throw TimeIsOver() }
                }
            }
            do {
                // Not waitForAll, which waits for the others when one has failed.
                while try await group.next() != nil {}
            } catch is TimeIsOver {
                group.cancelAll()
            }
        }
        for device in devices { await device.device.weir.stop() }
    }

    private struct TimeIsOver: Error {}

    /// Brings all devices on line, and returns where they differ.
    private func settle(_ devices: [TestDevice]) async throws -> [String] {
        Output.complain("All devices go online and sync.")
        for device in devices { device.network.goOnline() }
        let group = Convergence.Group(login: login, devices: devices) {
            // A run that was killed may have left one, which has what the server had then.
            try await open("reference-\(UUID().uuidString)")
        }
        let findings = try await Convergence(groups: [group]).findings(rounds: 10)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasPrefix("reference-")
        {
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
        return findings
    }
}
