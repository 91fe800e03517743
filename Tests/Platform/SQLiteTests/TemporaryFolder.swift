import FoundationEssentials
import SQLite

/// A folder of one test, removed at its end.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/weir-sqlite-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            print("could not remove \(path): \(error)")
        }
    }

    func file(_ name: String = "test.sqlite") -> String { path + "/" + name }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
    }

    func read(_ name: String) throws -> [UInt8] {
        try [UInt8](Data(contentsOf: URL(fileURLWithPath: file(name))))
    }

    func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: file(name))
    }
}

/// Gives a test a connection to a file of its own, and closes it.
func withConnection(
    write: WriteOptions = WriteOptions(), options: ConnectionOptions = ConnectionOptions(),
    _ body: (Connection) throws -> Void
) throws {
    let folder = try TemporaryFolder()
    try withConnection(to: folder.file(), access: .readWriteCreate(write), options: options, body)
}

/// Opens a file for a test, and closes it.
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
    /// The one integer that a query gives.
    func number(_ sql: String) throws -> Int64 {
        var statement = try prepare(sql)
        guard try statement.step() else { throw NoRow() }
        return try statement.integer(at: 0)
    }

    /// The one text that a query gives.
    func word(_ sql: String) throws -> String {
        var statement = try prepare(sql)
        guard try statement.step() else { throw NoRow() }
        return try statement.text(at: 0)
    }
}

struct NoRow: Error {}

/// What a test's closure throws on purpose.
struct Refusal: Error, Equatable {
    var number = 0
}

/// The error of SQLite that a closure throws.
func sqliteError(_ body: () throws -> Void) -> SQLiteError? {
    do {
        try body()
        return nil
    } catch {
        return error as? SQLiteError
    }
}
