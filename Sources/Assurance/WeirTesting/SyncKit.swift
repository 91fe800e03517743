import Foundation
import LocalTables
import SchemaFile
import SyncModel
import Synchronization
import WeirClient

/// An app's devices and a server of their own, in one process, for the app's tests.
///
/// The server is the real one, without a network. Each device has a database file of its own, a connection as the app has it, and a
/// network in which faults happen where the test says so:
///
///     try await SyncKit.with(schema: schema) { kit in
///         let phone = try await kit.device("phone"), tablet = try await kit.device("tablet")
///         phone.network.goOffline()
///         try await phone.write("INSERT INTO todo (id, title) VALUES ('t1', 'Buy milk')")
///         phone.network.goOnline()
///         try await kit.converge()
///         #expect(try await tablet.texts("SELECT title FROM todo") == ["Buy milk"])
///     }
///
/// It needs neither Swift Testing nor XCTest and works with both: what does not hold is thrown.
public final class SyncKit: Sendable {
    /// What the app does to a new database file before Weir opens it.
    public struct App: Sendable {
        /// SQL that creates the app's tables.
        public var createTables: String
        /// The tables to sync.
        public var tables: [String]

        /// - Parameters:
        ///   - createTables: SQL that creates the app's tables, as its first migration does.
        ///   - tables: the tables to sync, as in `Weir.open`.
        public init(createTables: String, tables: [String]) {
            self.createTables = createTables
            self.tables = tables
        }
    }

    /// The server that the devices sync with.
    public let server: TestServer
    /// The time of delays, which passes where a test says so.
    public let clock = TestClock()
    /// What everything random of the kit follows from; failures name it.
    public let seed: UInt64

    private let app: App?
    private let folder: URL
    private let state = Mutex(State())

    private struct State {
        var devices: [TestDevice] = []
        var faults: (percent: Int, kinds: [NetworkFault]) = (0, [])
        /// Devices and references that were made, for the names of their files.
        var files = 0
    }

    /// Starts a server on a new temporary folder.
    ///
    /// - Parameters:
    ///   - schema: the text of the server's schema file.
    ///   - app: the app's tables; `nil`: each device has the server's tables, with the key `id`.
    ///   - seed: of the faults.
    /// - Throws: what is wrong with the schema, line by line, or why the server does not start.
    public init(schema: String, app: App? = nil, seed: UInt64 = 1) async throws {
        let tables = try SchemaFile.tables(from: Array(schema.utf8))
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("weir-testing-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        server = TestServer(folder: folder.appendingPathComponent("server").path, tables: tables)
        self.app = app
        self.seed = seed
        do {
            try await server.start()
        } catch {
            try FileManager.default.removeItem(at: folder)
            throw error
        }
    }

    /// Starts a server with the schema of a file, such as the one that is deployed.
    public convenience init(schemaFile: URL, app: App? = nil, seed: UInt64 = 1) async throws {
        try await self.init(schema: String(contentsOf: schemaFile, encoding: .utf8), app: app, seed: seed)
    }

    /// Runs a body with a kit, and closes it afterwards.
    ///
    /// - Throws: what ``init(schema:app:seed:)``, the body or ``close()`` throws.
    public static func with<Value>(
        schema: String, app: App? = nil, seed: UInt64 = 1, isolation: isolated (any Actor)? = #isolation,
        _ body: (SyncKit) async throws -> Value
    ) async throws -> Value {
        let kit = try await SyncKit(schema: schema, app: app, seed: seed)
        let value: Value
        do {
            value = try await body(kit)
        } catch {
            try await kit.close()
            throw error
        }
        try await kit.close()
        return value
    }

    /// Closes all devices, stops the server and removes the files.
    public func close() async throws {
        let devices = state.withLock { state in
            defer { state.devices = [] }
            return state.devices
        }
        for device in devices { await device.close() }
        try await server.stop()
        try FileManager.default.removeItem(at: folder)
    }

    // MARK: Devices

    /// The devices, in the order in which they were made.
    public var devices: [TestDevice] { state.withLock { $0.devices } }

    /// A new device with an empty database, logged in to an account.
    ///
    /// - Parameters:
    ///   - name: for the test and its failures, different for each device.
    ///   - account: devices of one account have the same rows.
    ///   - links: other accounts, and what this one may do with their rows.
    /// - Throws: `SyncError` if the server is stopped; `WeirError` if the app's tables cannot be synced.
    public func device(
        _ name: String, account: String = "account", links: [String: WeirClient.Access] = [:]
    ) async throws -> TestDevice {
        let device = try await make(name, Login(account: account, links: links))
        let (number, faults) = state.withLock { state in
            state.devices.append(device)
            return (state.devices.count - 1, state.faults)
        }
        if faults.percent > 0 { device.network.faults = plan(faults, ofDevice: number) }
        return device
    }

    func make(_ name: String, _ login: Login) async throws -> TestDevice {
        let number = state.withLock { state in
            state.files += 1
            return state.files
        }
        let network = TestNetwork(server.transport, clock: clock)
        let tables: [String]
        let create: @Sendable (Database) throws -> Void
        if let app {
            tables = app.tables
            create = { try $0.execute(app.createTables) }
        } else {
            let response = try await server.transport.send(
                TransportRequest(
                    method: "GET", url: TestServer.url.appendingPathComponent("v1/schema"),
                    headers: ["x-sync-id": "account"]))
            let local = try LocalTables(schema: response.body)
            tables = local.names
            create = { database in try database.transaction { try local.create(in: database) } }
        }
        return try await TestDevice(
            name, login, at: TestServer.url, file: folder.appendingPathComponent("device-\(number).sqlite"),
            tables: tables, network: network, random: TestRandom(seed: seed &* 0x85EB_CA6B &+ UInt64(number)),
            create: create)
    }

    /// Lets so many of a hundred requests of every device fail from now on, also of devices that are made later, each device's by a
    /// seed of its own that follows from the kit's.
    public func injectFaults(percent: Int, kinds: [NetworkFault] = NetworkFault.allCases) {
        state.withLock { $0.faults = (percent, kinds) }
        for (number, device) in devices.enumerated() {
            device.network.faults = plan((percent, kinds), ofDevice: number)
        }
    }

    private func plan(_ faults: (percent: Int, kinds: [NetworkFault]), ofDevice number: Int) -> FaultPlan {
        FaultPlan(percent: faults.percent, kinds: faults.kinds, seed: seed &* 0x9E37_79B9 &+ UInt64(number))
    }
}
