import Commands
import Foundation
import LocalTables
import WeirClient

/// Why a command cannot be carried out.
struct DeviceFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The database file of the device, and the program's own connection to it.
///
/// What the program itself keeps is in a table whose name no table of a server can have.
actor DeviceFile {
    /// The tables as the server described them last.
    let tables: LocalTables
    let weir: Weir

    nonisolated var path: String { options.file.path }

    private let options: DeviceOptions
    private let executor: QueueExecutor
    private let database: Database

    private init(
        _ options: DeviceOptions, _ executor: QueueExecutor, _ database: sending Database, _ tables: LocalTables,
        _ weir: Weir
    ) {
        self.options = options
        self.executor = executor
        self.database = database
        self.tables = tables
        self.weir = weir
    }

    /// SQLite's calls block.
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    // MARK: Opening

    /// Opens the file, or creates it with the server's tables.
    ///
    /// - Parameter isOnline: whether the command needs the server, whose tables may be others by now.
    static func open(_ options: DeviceOptions, isOnline: Bool = false) async throws -> DeviceFile {
        let exists = FileManager.default.fileExists(atPath: options.file.path)
        if !exists, options.server ?? options.otherwise.server == nil {
            throw DeviceFailure(
                "there is no \(options.file.path): create it with --server URL and --sync-id, --token or --token-file")
        }
        let executor = QueueExecutor(label: "device")
        let opening = Opening(executor, options)
        var schema = try await opening.knownSchema()
        if schema == nil || isOnline {
            do {
                schema = try await update(opening)
            } catch let error where schema != nil && (error is SyncError || error is LocalTables.Unreadable) {
                // The command uses the tables that are there, and says what is wrong with the network or the token.
            }
        }
        guard let schema else { throw DeviceFailure("\(options.file.path) has no tables of a server") }
        let tables = try LocalTables(schema: schema)
        let weir = try await Weir.open(options.file, tables: tables.names)
        let file = DeviceFile(options, executor, try Database(path: options.file.path), tables, weir)
        do {
            try await file.requireAccount()
            // From its first command on the file is the account's.
            if !exists {
                try await file.attach()
                Output.complain("Created \(file.path).")
            }
        } catch {
            await file.close()
            throw error
        }
        return file
    }

    /// Refuses a command for another account than the file's, which would otherwise write rows of the file's.
    private func requireAccount() throws {
        guard case .named(let name) = options.account, let known = try Settings.value("sync-id", in: database),
            known != name
        else { return }
        throw DeviceFailure("\(path) is attached to the account \(known), not \(name): give another --file")
    }

    /// Gets the server's schema, and creates what the file lacks of it.
    private static func update(_ opening: Opening) async throws -> [UInt8] {
        let login = try await opening.login()
        let server = Server(url: login.server, credentials: login.credentials, transport: URLSessionTransport())
        let response = try await server.send("GET", "v1/schema", as: try await server.caller())
        try await opening.create(LocalTables(schema: response.body), response.body, login)
        return response.body
    }

    /// Attaches the file to its account.
    func attach() async throws {
        let login = try Login(options, database)
        var sync = SyncOptions()
        sync.knowledgeID = try options.device ?? Settings.value("device", in: database)
        switch login.credentials {
        case .unauthenticated(let syncID, _):
            try await weir.attach(syncID, server: login.server, options: sync)
        case .token(let token):
            // The name is the file's own. Whether a token is of its account, the server's answers tell.
            let name = try Settings.value("sync-id", in: database) ?? "token"
            try await weir.attach(name, server: login.server, options: sync, token: token)
        }
    }

    func close() async {
        await weir.close()
        database.close()
    }

    /// Opens a file for a body, and closes it afterwards.
    static func with<Value: Sendable>(
        _ invocation: Invocation, isOnline: Bool = false,
        _ body: (DeviceFile, DeviceOptions) async throws -> Value
    ) async throws -> Value {
        let options = try DeviceOptions(invocation)
        let file = try await open(options, isOnline: isOnline)
        do {
            let value = try await body(file, options)
            await file.close()
            return value
        } catch {
            await file.close()
            throw error
        }
    }

    // MARK: Rows

    /// The server's table; the error names those that there are.
    func table(_ name: String) throws(UsageError) -> LocalTables.Table {
        guard let table = tables.table(name) else {
            throw UsageError("there is no table \(name); the tables are \(tables.names.joined(separator: ", "))")
        }
        return table
    }

    struct Change: Sendable {
        let sql: String
        let values: [SQLValue]
    }

    /// Runs a statement in a transaction of its own.
    ///
    /// - Parameter otherwise: another one for the same transaction, if that has changed no row.
    /// - Returns: how many rows were changed.
    func write(_ change: Change, otherwise: (@Sendable () throws -> Change)? = nil) throws -> Int {
        try database.transaction {
            let count = try database.run(change.sql, change.values)
            guard count == 0, let other = try otherwise?() else { return count }
            return try database.run(other.sql, other.values)
        }
    }

    func rows(_ sql: String, _ values: [SQLValue] = []) throws -> [ObservedRow] {
        try database.observedRows(sql, values)
    }

    /// The rows whose changes the server has not acknowledged, as table and key.
    func pending() async throws -> [(table: String, key: String)] {
        // It brings together what triggers have recorded.
        _ = try await weir.pendingRows()
        return try tables.names.sorted().flatMap { table in
            let view = quoted("weir_\(table)_state")
            return try database.map("SELECT id FROM \(view) WHERE is_pending OR is_sent ORDER BY id") {
                (table: table, key: $0.string(at: 0))
            }
        }
    }

    var account: (server: String, name: String)? {
        get throws {
            guard let server = try Settings.value("server", in: database) else { return nil }
            return (server, try Settings.value("sync-id", in: database) ?? "that of its token")
        }
    }
}

/// What the program keeps in the file.
private enum Settings {
    /// No table of a server can have this name.
    static let table = "\"device-settings\""

    static func value(_ key: String, in database: Database) throws -> String? {
        try database.value("SELECT value FROM \(table) WHERE key = ?1", [.text(key)])?.string
    }

    static func set(_ key: String, _ value: String, in database: Database) throws {
        try database.run(
            "INSERT INTO \(table) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2 WHERE value IS NOT ?2",
            [.text(key), .text(value)])
    }
}

/// The server and the account: those of the call, or else those that the file remembers, or else those of the environment.
private struct Login: Sendable {
    let server: URL
    let credentials: Credentials

    init(_ options: DeviceOptions, _ database: Database?) throws {
        let known = try database.flatMap { try Settings.value("server", in: $0) }.flatMap(URL.init(string:))
        guard let server = options.server ?? known ?? options.otherwise.server else {
            throw DeviceFailure("name the server: --server URL")
        }
        self.server = server
        let name = try database.flatMap { try Settings.value("sync-id", in: $0) }
        switch options.account ?? name.map({ .named($0) }) ?? options.otherwise.account {
        case .named(let name): credentials = .unauthenticated(syncID: name, links: [:])
        case .token(let token): credentials = .token(token)
        case nil: throw DeviceFailure("name the account: --sync-id ID, or --token-file FILE")
        }
    }
}

/// The file before it has the server's tables.
private actor Opening {
    private let executor: QueueExecutor
    private let options: DeviceOptions

    init(_ executor: QueueExecutor, _ options: DeviceOptions) {
        self.executor = executor
        self.options = options
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private func withDatabase<Value>(_ body: (Database) throws -> Value) throws -> Value? {
        guard FileManager.default.fileExists(atPath: options.file.path) else { return nil }
        let database = try Database(path: options.file.path)
        defer { database.close() }
        let names = try database.map("SELECT name FROM sqlite_schema") { $0.string(at: 0) }
        // It is being created, or its creation was interrupted.
        if names.isEmpty { return nil }
        guard names.contains("device-settings") else {
            throw DeviceFailure("\(options.file.path) is a database of another program")
        }
        return try body(database)
    }

    func knownSchema() throws -> [UInt8]? {
        try withDatabase { try Settings.value("schema", in: $0) }.flatMap { $0 }.map { Array($0.utf8) }
    }

    func login() throws -> Login { try withDatabase { try Login(options, $0) } ?? Login(options, nil) }

    /// Creates the file, or adds what the server's tables have gained.
    func create(_ tables: LocalTables, _ schema: [UInt8], _ login: Login) throws {
        // An empty file is an empty database. Only this user may read it, and another process may create it at the same time.
        let descriptor = Foundation.open(options.file.path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DeviceFailure("\(options.file.path) cannot be created") }
        Foundation.close(descriptor)
        let database = try Database(path: options.file.path)
        defer { database.close() }
        try database.execute("PRAGMA journal_mode = WAL")
        let device = options.device
        try database.transaction {
            let isNew = try database.value("SELECT 1 FROM sqlite_schema WHERE name = 'device-settings'") == nil
            try database.execute(
                "CREATE TABLE IF NOT EXISTS \(Settings.table) (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
            )
            try tables.create(in: database)
            try Settings.set("schema", String(decoding: schema, as: UTF8.self), in: database)
            try Settings.set("server", login.server.absoluteString, in: database)
            guard isNew else { return }
            if case .unauthenticated(let syncID, _) = login.credentials {
                try Settings.set("sync-id", syncID, in: database)
            }
            // A process that is ended before it is attached leaves it to the next one.
            if let device { try Settings.set("device", device, in: database) }
        }
    }
}
