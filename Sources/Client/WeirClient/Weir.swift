import Foundation

/// An app's SQLite database whose tables are synced.
///
/// The app uses its database as before, through any SQLite library and from any process: triggers in the file
/// capture what is inserted, updated and deleted. The tables themselves stay as they are; what Weir keeps is in tables of
/// the same file whose names begin with `weir_`.
///
/// Not captured are writes that fire no triggers: `sqlite3_blob_write`, and those of connections whose triggers are disabled.
///
/// Use one copy of SQLite in a process for one file. Two copies, such as the system's and one that a library brings,
/// do not know of each other's locks and can damage the file (https://www.sqlite.org/howtocorrupt.html).
///
/// Weir's transactions are short, and the app's writes wait for them: give the app's connections a busy timeout of some
/// seconds. `PRAGMA temp_store = MEMORY` makes large transactions of the app faster, as SQLite keeps more of them aside where
/// tables have triggers.
public actor Weir {
    private let queue: QueueExecutor
    let path: String
    private let tableNames: [String]
    /// Gets each connection to the file before it is used.
    let prepareConnection: ConnectionPreparation?

    /// Prepares a connection, given as SQLite's `sqlite3 *`, which must not be kept.
    public typealias ConnectionPreparation = @Sendable (_ connection: OpaquePointer) throws -> Void

    private var file: ClientFile?
    /// Changes that may not have been captured before this call of ``open(_:tables:prepareConnection:)``.
    public private(set) var gaps: [CaptureGap] = []

    // MARK: State of syncing
    nonisolated let statuses = Broadcast(SyncStatus())
    /// Counts changes of the file's tables, for queries that are observed.
    nonisolated let changes = Broadcast(0)
    /// Observers of the tables that Weir writes.
    nonisolated let writes = TableBroadcast()
    var attachment: Attachment?
    /// The session that is under way, which is the only one.
    var currentSession: Task<Bool, any Error>?
    var runner: (runner: Runner, task: Task<Void, Never>)?
    /// Whether the app has called ``start()``, and not ``stop()``.
    var isStarted = false
    var isSuspended = false
    /// Whether ``detach(_:discardingUnsent:)`` is under way, meanwhile nothing is synced.
    var isDetaching = false
    /// Whether the last session did not begin since another process has the lease.
    var isLeasedElsewhere = false
    private(set) var isClosed = false
    var resolvers = ConflictResolvers()
    /// What the file was like when it was last looked at for writes.
    var dataVersion: Int64?
    var foreignWrites = ForeignWrites()
    var pendingMark: PendingMark?

    init(path: String, tables: [String], prepareConnection: ConnectionPreparation?) {
        queue = QueueExecutor(label: "weir")
        self.path = path
        tableNames = tables
        self.prepareConnection = prepareConnection
    }

    deinit {
        runner?.task.cancel()
        for task in resolvers.tasks.values { task.cancel() }
        statuses.finish()
        changes.finish()
        writes.finish()
    }

    /// SQLite's calls block, so they have a queue of their own.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    /// Opens the app's database and captures the changes of these tables from now on.
    ///
    /// Call it after the app's own migrations, at every start: it adds what new columns need and restores triggers that a
    /// migration has removed; ``gaps`` then says what may have been missed. Tables that were captured before and are not
    /// named any more are no longer captured; edits of them that are pending stay. So all processes of an app name the
    /// same tables. Others that have the file open, in this process or another one, follow with their next call where
    /// columns were added, and capture their own tables again where this call does not name them.
    ///
    /// Migrations of captured tables are made with ``migrate(_:tables:backfill:prepareConnection:_:)``.
    ///
    /// - Parameters:
    ///   - url: an existing SQLite database.
    ///   - tables: tables with a primary key of one column: INTEGER, TEXT or, for uuids in 16 bytes, BLOB.
    ///   - prepareConnection: gets each connection that Weir opens itself, as SQLite's `sqlite3 *`, before it is used, also later ones such as
    ///     that of ``resume()``. Register here the app's collations and functions that indexes, defaults or triggers of its tables need. The
    ///     app must use the same copy of SQLite, and not keep the pointer.
    /// - Throws: `WeirError`, and what `prepareConnection` throws; then nothing was changed in the file.
    public static func open(
        _ url: URL, tables: [String], prepareConnection: ConnectionPreparation? = nil
    ) async throws -> Weir {
        let weir = Weir(path: url.path, tables: tables, prepareConnection: prepareConnection)
        try await weir.openTheFile()
        return weir
    }

    /// Opens the connection to the file, which must be closed.
    func openTheFile(isMigrated: Bool = false) throws {
        let file = try ClientFile(path: path, tables: tableNames, isMigrated: isMigrated, prepare: prepareConnection)
        gaps = file.gaps
        use(file)
    }

    private func use(_ file: ClientFile) {
        file.database.onCommit { [writes] in writes.send($0) }
        self.file = file
        (dataVersion, pendingMark) = (nil, nil)
    }

    var isFileOpen: Bool { file != nil }

    /// The connection to the file, also of a Weir that is suspended or closed from now on.
    var openDatabase: Database? { file?.database }

    /// Closes the connection to the file.
    func closeTheFile() {
        file?.database.close()
        file = nil
    }

    /// Adopts rows that were in the tables before they were captured, as if they were inserted now.
    ///
    /// Rows that were captured or synced are left as they are, so it may be repeated, also after an interruption. It writes in
    /// short transactions, between which the app can write.
    ///
    /// - Parameter tables: some of the tables that were opened; all by default.
    /// - Returns: how many rows were adopted.
    /// - Throws: `WeirError`; `CancellationError`, after which the rows adopted so far stay so.
    @discardableResult
    public func seed(_ tables: [String]? = nil) async throws -> Int {
        var count = 0
        do {
            try await adopt(tables, &count)
        } catch {
            if count > 0 { await wrote() }
            throw error
        }
        if count > 0 { await wrote() }
        return count
    }

    /// Adopts rows without scheduling a session, since a session does so itself.
    ///
    /// - Parameter count: grows by how many were adopted, also where it throws.
    func adopt(_ tables: [String]? = nil, _ count: inout Int) async throws {
        for table in try captured(tables) {
            var last: SQLValue?
            repeat {
                try Task.checkCancellation()
                count += try openFile.seed(table, after: &last)
                await Task.yield()
            } while last != nil
        }
    }

    /// How many rows have changes that the server has not acknowledged.
    ///
    /// Rows are not counted of which only columns have changed that the server does not have:
    /// ``SyncStatus/Attention/unknownColumns(_:)`` names these.
    public func pendingRows() throws -> Int { try openFile.pendingRows() }

    /// This device's name at the server; `nil` before the file is attached for the first time.
    ///
    /// For servers whose tokens are for one device: the app's closure for tokens asks for one of this name. It changes where the file turns
    /// out to be a copy (``SyncOptions/knowledgeID``), and with ``detach(_:discardingUnsent:)``.
    public func knowledgeID() throws -> String? { try SessionRecord(database: openFile.database).device }

    /// Ends syncing, closes the connection to the file, whose changes are still captured, and releases the closures that were given to
    /// `attach`; may be repeated.
    public func close() async {
        isClosed = true
        endResolvers()
        await stop()
        await endSession()
        closeTheFile()
        // Its closures may hold this object.
        attachment = nil
        statuses.finish()
        changes.finish()
        writes.finish()
    }

    /// The tables with these names; all of them by default.
    func captured(_ names: [String]?) throws -> [CapturedTable] {
        let file = try openFile
        return try names?.map { try file.table(named: $0) } ?? file.tables
    }

    var openFile: ClientFile {
        get throws {
            if isSuspended, !isClosed { throw WeirError.suspended }
            guard let file, !isClosed else { throw WeirError.closed }
            return try file.isCurrent() ? file : reopened(file)
        }
    }

    /// The file with the columns that it has now, in place of the one that was opened before.
    private func reopened(_ before: ClientFile) throws -> ClientFile {
        let new = try ClientFile(path: path, tables: tableNames, prepare: prepareConnection)
        gaps += new.gaps
        use(new)
        before.database.close()
        return new
    }

    /// Requires that the file was not opened again since, in which case what was read of it counts no more.
    func require(_ file: ClientFile) throws {
        guard try openFile === file else { throw WeirError.staleFile }
    }

    var attached: Attachment {
        get throws {
            guard let attachment else { throw isClosed ? WeirError.closed : .notAttached }
            return attachment
        }
    }
}
