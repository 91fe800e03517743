import CWeirSQLite
import Foundation

/// A compiled statement of a connection, which is finalized with it.
final class Statement {
    private var handle: OpaquePointer?
    private let sql: String
    /// Whether its rows are being read.
    private(set) var isRunning = false
    private let record: WriteRecord
    /// The tables that it writes.
    private var tables: Set<String>
    /// The last transaction in which that was recorded.
    private var recordedIn: Int?

    init(_ handle: OpaquePointer, sql: String, _ record: WriteRecord) {
        self.handle = handle
        self.sql = sql
        self.record = record
        tables = record.takeCompiled()
    }

    deinit { finalize() }

    /// Ends the statement, which fails afterwards; may be repeated.
    func finalize() {
        sqlite3_finalize(handle)
        handle = nil
    }

    /// Runs the statement to its end and ignores its rows.
    ///
    /// - Returns: the rows that it changed, without those that triggers changed.
    @discardableResult
    func run(_ values: [SQLValue]) throws -> Int {
        try rows(values) { _ in }
        return Int(sqlite3_changes(sqlite3_db_handle(handle)))
    }

    /// Runs the statement and passes each of its rows to a closure, which may run others.
    func rows(_ values: [SQLValue], _ body: (Row) throws -> Void) throws {
        guard let handle else { throw WeirError(code: SQLITE_MISUSE, of: nil, sql: sql) }
        isRunning = true
        defer {
            isRunning = false
            // Both return the error of the last step, which was thrown.
            sqlite3_reset(handle)
            sqlite3_clear_bindings(handle)
            recordWrites()
        }
        for (index, value) in values.enumerated() {
            let code = Self.bind(value, to: handle, at: Int32(index + 1))
            if code != SQLITE_OK { throw failure(code) }
        }
        while true {
            switch sqlite3_step(handle) {
            case SQLITE_ROW: try body(Row(statement: handle))
            case SQLITE_DONE: return
            case let code: throw failure(code)
            }
        }
    }

    private func recordWrites() {
        // SQLite has compiled it again where the schema had changed, and what a virtual table runs.
        let compiled = record.takeCompiled()
        if !compiled.isSubset(of: tables) {
            tables.formUnion(compiled)
            recordedIn = nil
        }
        if tables.isEmpty { return }
        if recordedIn != record.transaction {
            record.add(tables)
            recordedIn = record.transaction
        }
        if sqlite3_get_autocommit(sqlite3_db_handle(handle)) != 0 { record.commit() }
    }

    private static func bind(_ value: SQLValue, to statement: OpaquePointer, at index: Int32) -> Int32 {
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
    private static var empty: UnsafeRawPointer { UnsafeRawPointer(bitPattern: 1)! }

    private func failure(_ code: Int32) -> WeirError { WeirError(code: code, of: sqlite3_db_handle(handle), sql: sql) }
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

    func isText(at column: Int) -> Bool { sqlite3_column_type(statement, Int32(column)) == SQLITE_TEXT }

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

    /// Whether a column has exactly this value, which is not copied.
    func has(_ value: SQLValue, at column: Int) -> Bool {
        let index = Int32(column)
        switch (value, sqlite3_column_type(statement, index)) {
        case (.null, SQLITE_NULL): return true
        case (.integer(let number), SQLITE_INTEGER): return number == sqlite3_column_int64(statement, index)
        case (.real(let number), SQLITE_FLOAT): return number == sqlite3_column_double(statement, index)
        case (.text(let bytes), SQLITE_TEXT), (.blob(let bytes), SQLITE_BLOB):
            guard let address = sqlite3_column_blob(statement, index) else { return bytes.isEmpty }
            guard Int(sqlite3_column_bytes(statement, index)) == bytes.count else { return false }
            return bytes.withUnsafeBytes { bytes in
                bytes.baseAddress.map { memcmp(address, $0, bytes.count) == 0 } ?? true
            }
        default: return false
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

extension WeirError {
    /// What SQLite says of an error.
    init(code: Int32, of connection: OpaquePointer?, sql: String?) {
        let message = connection.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        self = .database(code: code, message: message, sql: sql)
    }
}
