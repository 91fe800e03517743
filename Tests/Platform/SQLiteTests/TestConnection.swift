import SQLite
import TestResources

/// Runs a body with a connection to a new file.
func withConnection(
    write: WriteOptions = WriteOptions(), options: ConnectionOptions = ConnectionOptions(),
    _ body: (Connection) throws -> Void
) throws {
    let folder = try TemporaryFolder()
    try withConnection(to: folder.file(), access: .readWriteCreate(write), options: options, body)
}

/// Runs a body with a connection to a file.
func withConnection(
    to path: String, access: Access, options: ConnectionOptions = ConnectionOptions(),
    _ body: (Connection) throws -> Void
) throws {
    let connection = try Connection(path: path, access: access, options: options)
    do {
        try body(connection)
    } catch {
        try connection.close()
        throw error
    }
    try connection.close()
}

extension Connection {
    /// The integer in the query's only row.
    func number(_ sql: String) throws -> Int64 {
        var statement = try prepare(sql)
        guard try statement.step() else { throw NoRow() }
        return try statement.integer(at: 0)
    }

    /// The text in the query's only row.
    func text(_ sql: String) throws -> String {
        var statement = try prepare(sql)
        guard try statement.step() else { throw NoRow() }
        return try statement.text(at: 0)
    }
}

struct NoRow: Error {}

struct Refusal: Error, Equatable {
    var number = 0
}

func sqliteError(_ body: () throws -> Void) -> SQLiteError? {
    do {
        try body()
        return nil
    } catch {
        return error as? SQLiteError
    }
}
