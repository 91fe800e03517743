import Foundation
import SQLite

/// Damage of an index in the bytes of its file: SQL keeps indexes right, and may not write `sqlite_schema`.
package enum IndexDamage {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Removes the entries of an index whose rows do not meet a condition; the rows stay, and the B-tree is in order.
    ///
    /// The page of a second index, which was made with the condition, is copied over that of the index.
    ///
    /// - Parameters:
    ///   - path: a file that nothing else has open.
    ///   - index: one with a single page.
    package static func keepEntries(where condition: String, of index: String, in path: String) throws {
        let (pageSize, from, to) = try withConnection(path) { connection in
            var definition = try connection.prepare("SELECT sql FROM sqlite_schema WHERE name = '\(index)'")
            guard try definition.step() else { throw Failure(description: "there is no index \(index)") }
            let sql = try definition.text(at: 0).replacing(" \(index) ", with: " kept_entries ")
            _ = consume definition
            try connection.execute("\(sql) WHERE \(condition)")
            return (
                try integer("PRAGMA page_size", connection), try rootPage(of: "kept_entries", connection),
                try rootPage(of: index, connection)
            )
        }
        let url = URL(fileURLWithPath: path)
        var bytes = try Data(contentsOf: url)
        let (source, target) = ((from - 1) * pageSize, (to - 1) * pageSize)
        for page in [source, target] where bytes[page] != leafOfIndex {
            throw Failure(description: "\(index) has several pages")
        }
        bytes.replaceSubrange(target..<target + pageSize, with: bytes[source..<source + pageSize])
        try bytes.write(to: url)
        try withConnection(path) { try $0.execute("DROP INDEX kept_entries") }
    }

    /// The first byte of a page of an index without pages below.
    private static let leafOfIndex: UInt8 = 10

    private static func rootPage(of index: String, _ connection: Connection) throws -> Int {
        try integer("SELECT rootpage FROM sqlite_schema WHERE name = '\(index)'", connection)
    }

    private static func integer(_ sql: String, _ connection: Connection) throws -> Int {
        var statement = try connection.prepare(sql)
        guard try statement.step() else { throw Failure(description: "no row: \(sql)") }
        return Int(try statement.integer(at: 0))
    }

    /// The close copies the write-ahead log into the file.
    private static func withConnection<Value>(_ path: String, _ body: (Connection) throws -> Value) throws -> Value {
        let connection = try Connection(path: path, access: .readWriteCreate())
        let result = Result { try body(connection) }
        try connection.close()
        return try result.get()
    }
}
