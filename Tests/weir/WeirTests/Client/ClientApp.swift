import Foundation
import Synchronization
import WeirClient

/// An app on one device: its database, to which it writes with a connection of its own, and Weir.
final class ClientApp {
    /// The app's connection, which knows nothing of Weir.
    let database: Database
    let weir: Weir
    let name: String
    let path: String
    private let account: String

    /// - Parameters:
    ///   - name: of the file, and the device's knowledgeId.
    ///   - sql: creates the tables, in a file that is not there yet.
    init(_ name: String, account: String = "abc", in folder: TestFolder, _ sql: String, tables: [String]) async throws {
        self.name = name
        self.account = account
        path = "\(folder.path)/\(name).sqlite"
        let isNew = !FileManager.default.fileExists(atPath: path)
        if isNew { try folder.write("", to: "\(name).sqlite") }
        database = try Database(path: path)
        try database.execute("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON")
        if isNew { try database.execute(sql) }
        weir = try await Weir.open(URL(fileURLWithPath: path), tables: tables)
    }

    /// Attaches it to a server on this machine.
    @discardableResult
    func attach(
        _ port: UInt16, links: [String: Access] = [:], transport: any Transport = URLSessionTransport()
    ) async throws -> AttachOutcome {
        var options = SyncOptions(transport: transport)
        options.knowledgeID = name
        options.writeCheck = .milliseconds(20)
        return try await weir.attach(account, server: Self.url(port), links: links, options: options)
    }

    static func url(_ port: UInt16) -> URL { URL(string: "http://127.0.0.1:\(port)")! }

    func run(_ sql: String) throws { try database.execute(sql) }

    /// The rows of a query, each as text.
    func rows(_ sql: String) throws -> [String] {
        try database.map(sql) { $0.string(at: 0) }
    }

    /// What Weir knows of a table's rows: key, timeStamp, and whether it is deleted.
    func states(_ number: Int = 1) throws -> [String] {
        try rows("SELECT id || ' ' || time_stamp || ' ' || deleted FROM weir_row_\(number) ORDER BY id")
    }

    /// Waits until a query has these rows; Weir is started.
    func waits(for expected: [String], _ sql: String) async throws {
        for await _ in weir.status where try rows(sql) == expected { return }
    }
}

/// A network that loses requests and answers by chance.
final class LossyTransport: Transport {
    struct Lost: Error {}

    private let transport = URLSessionTransport()
    private let random: Mutex<any RandomNumberGenerator & Sendable>
    /// In percent.
    private let chance: Int

    init(_ random: any RandomNumberGenerator & Sendable, chance: Int) {
        self.random = Mutex(random)
        self.chance = chance
    }

    private func mayFail() throws {
        let isLost = random.withLock { random in
            func roll(_ random: inout some RandomNumberGenerator) -> Int { Int.random(in: 0..<100, using: &random) }
            return roll(&random) < chance
        }
        if isLost { throw Lost() }
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        try mayFail()
        let response = try await transport.send(request)
        try mayFail()
        return response
    }

    func open(_ request: TransportRequest) async throws -> TransportStream { try await transport.open(request) }
}
