import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// An app on one device: its database, to which it writes with a connection of its own, and Weir.
final class Device {
    static let schema = "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT)"
    static let tables = ["item": ["title": "text", "note": "text"]]
    static let url = URL(string: "http://weir.test")!

    let folder: TemporaryFolder
    /// The app's connection.
    let database: Database
    private(set) var weir: Weir
    private var names: [String]

    init(_ sql: String = Device.schema, tables: [String] = ["item"]) async throws {
        folder = try TemporaryFolder()
        try folder.write([], to: "test.sqlite")
        database = try Database(path: folder.file())
        // No test cuts the power.
        try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;" + sql)
        names = tables
        weir = try await Weir.open(URL(fileURLWithPath: folder.file()), tables: tables)
    }

    /// The app on a file that is there, after a new start.
    init(copying write: (_ path: String) async throws -> Void, tables: [String] = ["item"]) async throws {
        folder = try TemporaryFolder()
        try await write(folder.file())
        database = try Database(path: folder.file())
        try database.execute("PRAGMA synchronous = OFF")
        names = tables
        weir = try await Weir.open(URL(fileURLWithPath: folder.file()), tables: names)
    }

    /// A server whose answers have few rows, and another device that has written four.
    static func ofShortAnswers() async throws -> (server: ContractServer, other: Device) {
        let server = ContractServer(tables)
        server.state.withLock { ($0.pageRows, $0.shownRows) = (3, 1) }
        let other = try await Device()
        try await other.attach(server)
        try other.run("INSERT INTO item VALUES ('x', 'X', NULL), ('y', 'Y', NULL), ('z', 'Z', NULL), ('w', 'W', NULL)")
        try await other.weir.sync()
        return (server, other)
    }

    /// A device that has synced two rows of its own, `a` and `b`.
    static func synced(_ server: ContractServer) async throws -> Device {
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL), ('b', 'B', NULL)")
        try await device.weir.sync()
        return device
    }

    /// Ends the app's use of Weir as a new start does.
    ///
    /// - Parameter tables: those that are synced from now on, if they are others.
    func restart(tables: [String]? = nil) async throws {
        await weir.close()
        names = tables ?? names
        weir = try await Weir.open(URL(fileURLWithPath: folder.file()), tables: names)
    }

    /// Another Weir for the same file, as another process has.
    func otherWeir() async throws -> Weir {
        try await Weir.open(URL(fileURLWithPath: folder.file()), tables: names)
    }

    /// What another process does while this one waits for an answer: it finds that the lease has run out, syncs, and sends each of these
    /// writes by itself.
    ///
    /// It does not end with the request.
    func elsewhere(_ transport: any Transport, writing writes: [String] = []) -> @Sendable () async throws -> Void {
        let (path, names) = (folder.file(), names)
        return {
            try await Task {
                let weir = try await Weir.open(URL(fileURLWithPath: path), tables: names)
                var options = Self.options(transport)
                options.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) }
                try await weir.attach("abc", server: Self.url, options: options)
                try await weir.sync()
                for sql in writes {
                    let database = try Database(path: path)
                    try database.execute(sql)
                    database.close()
                    try await weir.sync()
                }
                await weir.close()
            }.value
        }
    }

    @discardableResult
    func attach(
        _ transport: any Transport, _ change: (inout SyncOptions) -> Void = { _ in }
    ) async throws -> AttachOutcome {
        var options = Self.options(transport)
        change(&options)
        return try await weir.attach("abc", server: Self.url, options: options)
    }

    static func options(_ transport: any Transport) -> SyncOptions { SyncOptions(transport: transport) }

    /// Pulls before anything is sent, as after a new token, and is interrupted where it sends what is pending.
    func pull(_ server: any Transport) async throws {
        let transport = ScriptedTransport { request, _ in
            if request.url.path == "/v1/sync" { throw ScriptedTransport.Lost() }
            return try await server.send(request)
        }
        try await restart()
        try await weir.attach("abc", server: Self.url, options: Self.options(transport)) { "t" }
        do { try await weir.sync() } catch is SyncError {}
        try await attach(server)
    }

    /// Sends what is pending, and the first request or its answer is lost.
    func sync(
        with server: ContractServer, losing fault: Fault, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await attach(FaultyTransport(server, fault, at: 0))
        await #expect(throws: SyncError.self, sourceLocation: sourceLocation) { try await weir.sync() }
    }

    /// A network over which the first answer arrives after another connection has written.
    func network(_ server: any Transport, writing sql: String) -> ScriptedTransport {
        let path = folder.file()
        return ScriptedTransport { request, number in
            let response = try await server.send(request)
            if number == 0 {
                let database = try Database(path: path)
                try database.run(sql)
                database.close()
            }
            return response
        }
    }

    /// Pulls beneath what another connection writes before the answer arrives, and ends there.
    func pull(_ server: any Transport, beneath sql: String) async throws {
        let path = folder.file()
        let transport = ScriptedTransport { request, _ in
            let database = try Database(path: path)
            try database.execute(sql)
            database.close()
            withUnsafeCurrentTask { $0?.cancel() }
            return try await server.send(request)
        }
        try await attach(transport)
        do { try await weir.sync() } catch is CancellationError {}
        try await attach(server)
    }

    func run(_ sql: String) throws { try database.execute(sql) }

    /// The rows of a query as text.
    func rows(_ sql: String = "SELECT id || ' ' || title || ' ' || ifnull(note, '-') FROM item ORDER BY id") throws
        -> [String]
    {
        try database.map(sql) { $0.string(at: 0) }
    }

    /// What Weir keeps of each row.
    func states() throws -> [String] {
        try database.map("SELECT id, time_stamp, deleted FROM weir_row_1 ORDER BY id") {
            "\($0.string(at: 0)) \($0.integer(at: 1)) \($0.integer(at: 2))"
        }
    }
}
