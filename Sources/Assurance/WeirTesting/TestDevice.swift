import Foundation
import WeirClient

/// A device of a ``SyncKit``: an app's database file, the app's connection to it, and `Weir`.
///
/// The app's own code may open ``file`` as well, with any SQLite library that uses the system's SQLite.
public actor TestDevice {
    /// The name that the test has given it, which is its knowledgeId at the server as well.
    public nonisolated let name: String
    /// The account that it is logged in to.
    public nonisolated var account: String { login.account }
    /// The database file.
    public nonisolated let file: URL
    /// What requests go through.
    public nonisolated let network: TestNetwork
    /// As the app would have it, for `try await phone.weir.start()`.
    ///
    /// It is another one after ``restart()``.
    public private(set) var weir: Weir

    private let executor = QueueExecutor(label: "device")
    nonisolated let login: Login
    private let server: URL
    private let tables: [String]
    /// Of the pauses before attempts.
    private let random: TestRandom
    private let database: Database

    /// Opens the device's file, or creates it.
    ///
    /// - Parameters:
    ///   - name: its knowledgeId, when the file is created.
    ///   - create: creates the app's tables; is called for a file that has them, too.
    package init(
        _ name: String, _ login: Login, at server: URL, file: URL, tables: [String], network: TestNetwork,
        random: TestRandom, create: @Sendable (Database) throws -> Void
    ) async throws {
        self.name = name
        self.login = login
        self.server = server
        self.file = file
        self.tables = tables
        self.network = network
        self.random = random
        if !FileManager.default.fileExists(atPath: file.path) {
            // An empty file is an empty database.
            try Data().write(to: file)
        }
        database = try Database(path: file.path)
        // No test cuts the power.
        try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON")
        try create(database)
        weir = try await Weir.open(file, tables: tables)
        try await attach()
    }

    /// SQLite's calls block.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private func attach() async throws {
        var options = SyncOptions(transport: network)
        options.knowledgeID = name
        options.random = random
        options.writeCheck = .milliseconds(20)
        options.debounce = .milliseconds(10)
        if let token = login.token {
            try await weir.attach(login.account, server: server, options: options, token: token)
        } else {
            try await weir.attach(login.account, server: server, links: login.links, options: options)
        }
    }

    // MARK: The app

    /// Runs SQL of the app in one transaction, on the app's own connection.
    ///
    /// - Parameters:
    ///   - sql: one statement, or several if there are no arguments.
    ///   - arguments: the values of its parameters `?1`, `?2`, …
    /// - Throws: `WeirError.database`; then nothing is changed.
    public func write(_ sql: String, _ arguments: [SQLValue] = []) throws {
        try database.transaction {
            if arguments.isEmpty { try database.execute(sql) } else { try database.run(sql, arguments) }
        }
    }

    /// The rows of a query, on the app's own connection.
    public func rows(_ sql: String, _ arguments: [SQLValue] = []) throws -> [ObservedRow] {
        try database.observedRows(sql, arguments)
    }

    /// The first column of a query as texts, to compare with a list.
    public func texts(_ sql: String, _ arguments: [SQLValue] = []) throws -> [String] {
        try database.map(sql, arguments) { $0.string(at: 0) }
    }

    /// Syncs once: sends what is pending, and receives what is new.
    ///
    /// - Throws: `SyncError` where the network or the server fails, which an app would try again; `WeirError`.
    public func sync() async throws { try await weir.sync() }

    /// Ends the app's use of Weir and begins it again, as a new start of the app does.
    public func restart() async throws {
        await weir.close()
        weir = try await Weir.open(file, tables: tables)
        try await attach()
    }

    /// Ends all use of the file, which stays.
    package func close() async {
        await weir.close()
        database.close()
    }

    // MARK: Comparing

    /// The rows of the synced tables, by table and key.
    package func content(_ forms: ValueForms = ValueForms([])) throws -> DeviceContent {
        try DeviceContent(of: tables, in: database, forms)
    }

    /// What has not reached the server.
    func pending() async throws -> [String] {
        let rows = try await weir.pendingRows()
        if rows == 0 { return [] }
        let reasons = weir.currentStatus.needsAttention.map { "\($0)" }.sorted()
        let reason = reasons.isEmpty ? "" : " (\(reasons.joined(separator: ", ")))"
        return ["\(name) has changes of \(rows) rows that the server has not acknowledged\(reason)"]
    }

    /// What the server has not stored, and what the app's tables cannot have: mostly why files differ.
    func notStored() async throws -> [String] {
        let kept = try await weir.keptEdits().map {
            "\(name) \($0.table) \($0.key.string ?? $0.key.description) was not stored: \($0.code): \($0.message)"
        }
        let parked = try await weir.parkedRows().map { "\(name) cannot have \($0.table) \($0.id): \($0.reason)" }
        return kept + parked
    }
}

/// How a device proves to be an account's.
package struct Login: Sendable {
    package let account: String
    package var links: [String: Access] = [:]
    /// `nil`: the server believes the account's name.
    package var token: (@Sendable () async throws -> String)?

    /// Whether both see the same rows.
    func isSame(as other: Login) -> Bool { account == other.account && links == other.links }

    package init(
        account: String, links: [String: Access] = [:], token: (@Sendable () async throws -> String)? = nil
    ) {
        self.account = account
        self.links = links
        self.token = token
    }
}
