import Foundation
import SQLite

/// The SQLite file of an app: statements with values and rows as JSON.
///
/// Opened for each transaction, so that a client that is dropped in the middle leaves what a killed app leaves.
struct AppDatabase: Sendable {
    let path: String

    /// Runs a transaction.
    func write<Value>(_ body: (AppTransaction) throws -> Value) throws -> Value {
        let connection = try Connection(path: path, access: .readWriteCreate())
        // An app's triggers call functions, which the server's own files may not.
        try connection.execute("PRAGMA trusted_schema = ON")
        let result = Result {
            try connection.transaction(.immediate) { try body(AppTransaction(connection: connection)) }
        }
        try connection.close()
        return try result.get()
    }

    func run(_ sql: String, _ values: [JSON] = []) throws { try write { try $0.run(sql, values) } }

    /// The first column of each row, which is JSON.
    func rows(_ sql: String, _ values: [JSON] = []) throws -> [JSON] { try write { try $0.rows(sql, values) } }
}

/// An open transaction of an ``AppDatabase``.
struct AppTransaction {
    fileprivate let connection: Connection

    /// Runs all statements of a text.
    func execute(_ statements: String) throws { try connection.execute(statements) }

    func run(_ sql: String, _ values: [JSON] = []) throws {
        var statement = try connection.prepare(sql)
        try Self.bind(values, to: &statement)
        while try statement.step() {}
    }

    /// The first column of each row, which is JSON.
    func rows(_ sql: String, _ values: [JSON] = []) throws -> [JSON] {
        var statement = try connection.prepare(sql)
        try Self.bind(values, to: &statement)
        var rows: [JSON] = []
        while try statement.step() {
            let text = try statement.text(at: 0)
            rows.append(JSON(try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)))
        }
        return rows
    }

    private static func bind(_ values: [JSON], to statement: inout Statement) throws {
        for (position, value) in values.enumerated() {
            let index = position + 1
            if let text = value.string {
                try statement.bind(text: text, at: index)
            } else if let number = value.value as? NSNumber {
                if String(cString: number.objCType) == "d" {
                    try statement.bind(double: number.doubleValue, at: index)
                } else {
                    try statement.bind(integer: number.int64Value, at: index)
                }
            } else {
                try statement.bindNull(at: index)
            }
        }
    }
}
