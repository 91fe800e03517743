import CSQLite

/// A connection to the app's database file.
///
/// It is not `Sendable`: it stays on the queue that opened it. The file's own settings, such as its journal mode, remain
/// as the app chose them.
package final class Database {
    private var handle: OpaquePointer?
    /// Compiled statements that are not in use, by their text.
    private var idle: [String: OpaquePointer] = [:]

    /// How long a statement waits for another connection's lock.
    private static let busyTimeoutMilliseconds: Int32 = 5000

    /// - Throws: `WeirError.database` if there is no such file, or if it is no database.
    package init(path: String) throws {
        // One queue uses the connection, so SQLite needs no mutex for it.
        let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
        do {
            if code != SQLITE_OK { throw failure(code) }
            sqlite3_extended_result_codes(handle, 1)
            sqlite3_busy_timeout(handle, Self.busyTimeoutMilliseconds)
            // SQLite opens lazily: this reads the file.
            try run("SELECT count(*) FROM sqlite_schema")
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    /// May be repeated.
    package func close() {
        for statement in idle.values { sqlite3_finalize(statement) }
        idle = [:]
        sqlite3_close_v2(handle)
        handle = nil
    }

    /// The rows that the last INSERT, UPDATE or DELETE changed, without those that triggers changed.
    package var changes: Int { Int(sqlite3_changes(handle)) }

    /// Runs one statement to its end and ignores its rows.
    ///
    /// - Returns: the rows that it changed.
    @discardableResult
    package func run(_ sql: String, _ values: [SQLValue] = []) throws -> Int {
        try rows(sql, values) { _ in }
        return changes
    }

    /// Runs all statements of a text, which are not cached.
    package func execute(_ script: String) throws {
        let code = sqlite3_exec(handle, script, nil, nil, nil)
        if code != SQLITE_OK { throw failure(code, sql: script) }
    }

    /// Runs one statement and passes each of its rows to a closure, which may run others.
    package func rows(_ sql: String, _ values: [SQLValue] = [], _ body: (Row) throws -> Void) throws {
        let statement = try idle.removeValue(forKey: sql) ?? compile(sql)
        defer {
            // Both return the error of the last step, which was thrown.
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
            if let other = idle.updateValue(statement, forKey: sql) { sqlite3_finalize(other) }
        }
        for (index, value) in values.enumerated() {
            let code = bind(value, to: statement, at: Int32(index + 1))
            if code != SQLITE_OK { throw failure(code, sql: sql) }
        }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: try body(Row(statement: statement))
            case SQLITE_DONE: return
            case let code: throw failure(code, sql: sql)
            }
        }
    }

    /// What a closure makes of each row.
    package func map<Element>(
        _ sql: String, _ values: [SQLValue] = [], _ body: (Row) throws -> Element
    ) throws -> [Element] {
        var elements: [Element] = []
        try rows(sql, values) { elements.append(try body($0)) }
        return elements
    }

    /// The first column of the first row; `nil` without a row.
    package func value(_ sql: String, _ values: [SQLValue] = []) throws -> SQLValue? {
        try map(sql, values) { $0.value(at: 0) }.first
    }

    /// The first column of the first row, which is an integer.
    package func integer(_ sql: String, _ values: [SQLValue] = []) throws -> Int64? {
        guard case .integer(let number) = try value(sql, values) else { return nil }
        return number
    }

    /// Whether a transaction is open, which some errors end.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Runs a closure in a transaction that has the write lock from its beginning.
    ///
    /// It is committed when the closure returns, and rolled back when the closure or the commit throws.
    package func transaction<Result>(_ body: () throws -> Result) throws -> Result {
        try run("BEGIN IMMEDIATE")
        do {
            let result = try body()
            try run("COMMIT")
            return result
        } catch {
            // Some errors, such as a full disk, have rolled back already.
            if isInTransaction { try run("ROLLBACK") }
            throw error
        }
    }

    private func compile(_ sql: String) throws -> OpaquePointer {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw failure(code, sql: sql) }
        return statement
    }

    private func bind(_ value: SQLValue, to statement: OpaquePointer, at index: Int32) -> Int32 {
        switch value {
        case .null: sqlite3_bind_null(statement, index)
        case .integer(let number): sqlite3_bind_int64(statement, index, number)
        case .real(let number): sqlite3_bind_double(statement, index, number)
        case .text(let bytes):
            bytes.withUnsafeBytes {
                csqlite_bind_text_copied(statement, index, $0.baseAddress ?? empty, UInt64($0.count))
            }
        case .blob(let bytes):
            bytes.withUnsafeBytes {
                csqlite_bind_blob_copied(statement, index, $0.baseAddress ?? empty, UInt64($0.count))
            }
        }
    }

    /// An address for values without bytes: SQLite would bind NULL for a null pointer.
    private let empty = UnsafeRawPointer(bitPattern: 1)!

    private func failure(_ code: Int32, sql: String? = nil) -> WeirError {
        let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        return .database(code: code, message: message, sql: sql)
    }
}

/// The current row of a statement, valid until the next one.
package struct Row {
    fileprivate let statement: OpaquePointer

    /// How many columns it has.
    package var count: Int { Int(sqlite3_column_count(statement)) }

    /// The name that the query gives a column.
    package func name(at column: Int) -> String {
        sqlite3_column_name(statement, Int32(column)).map { String(cString: $0) } ?? ""
    }

    package func isNull(at column: Int) -> Bool { sqlite3_column_type(statement, Int32(column)) == SQLITE_NULL }

    /// SQLite converts another type, NULL to 0.
    package func integer(at column: Int) -> Int64 { sqlite3_column_int64(statement, Int32(column)) }

    /// SQLite converts another type, NULL to the empty string.
    package func string(at column: Int) -> String {
        sqlite3_column_text(statement, Int32(column)).map { String(cString: $0) } ?? ""
    }

    package func value(at column: Int) -> SQLValue {
        let index = Int32(column)
        switch sqlite3_column_type(statement, index) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, index))
        case SQLITE_FLOAT: return .real(sqlite3_column_double(statement, index))
        case SQLITE_TEXT: return .text(bytes(sqlite3_column_text(statement, index), index))
        case SQLITE_BLOB: return .blob(bytes(sqlite3_column_blob(statement, index), index))
        default: return .null
        }
    }

    /// The bytes of a blob or text; SQLite converts another type.
    package func bytes(at column: Int) -> [UInt8] {
        bytes(sqlite3_column_blob(statement, Int32(column)), Int32(column))
    }

    /// The address is null for an empty value.
    private func bytes(_ address: UnsafeRawPointer?, _ index: Int32) -> [UInt8] {
        guard let address else { return [] }
        return Array(UnsafeRawBufferPointer(start: address, count: Int(sqlite3_column_bytes(statement, index))))
    }
}

/// A name in SQL, quoted: keywords, spaces and quotes are part of it.
package func quoted(_ name: String) -> String { "\"" + name.replacing("\"", with: "\"\"") + "\"" }

/// A string literal in SQL.
package func literal(_ text: String) -> String { "'" + text.replacing("'", with: "''") + "'" }
