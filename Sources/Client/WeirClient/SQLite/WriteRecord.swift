import CWeirSQLite

/// Which tables a connection writes.
///
/// SQLite says it when it compiles a statement, also of what triggers and foreign keys do then. An update hook would not tell of tables
/// WITHOUT ROWID, nor of rows that a conflict clause replaces.
final class WriteRecord {
    /// By statements that were compiled and not yet asked about.
    private var compiled: Set<String> = []
    /// In the transaction that is open.
    private var written: Set<String> = []
    /// Counts transactions, so that a statement that runs for each of many rows is recorded once in each.
    private(set) var transaction = 0
    /// Is passed the tables of each transaction that was committed and has written.
    var committed: (Set<String>) -> Void = { _ in }

    /// Records what a connection compiles from now on, which this must outlive.
    func begin(with connection: OpaquePointer?) {
        sqlite3_set_authorizer(
            connection,
            { context, action, name, _, database, _ in
                guard [SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE].contains(action) else { return SQLITE_OK }
                guard let context, let name, let database, String(cString: database) == "main" else { return SQLITE_OK }
                let record = Unmanaged<WriteRecord>.fromOpaque(context).takeUnretainedValue()
                let table = String(cString: name)
                if !table.hasPrefix("sqlite_") { record.compiled.insert(table) }
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The tables that statements write which were compiled since the last call.
    func takeCompiled() -> Set<String> {
        if compiled.isEmpty { return compiled }
        defer { compiled = [] }
        return compiled
    }

    func add(_ tables: Set<String>) { written.formUnion(tables) }

    /// The open transaction was committed.
    func commit() {
        transaction += 1
        if written.isEmpty { return }
        let tables = written
        written = []
        committed(tables)
    }

    /// The open transaction was rolled back.
    func rollBack() {
        transaction += 1
        written = []
    }
}
