import Postgres
import SQLite

/// The baseline of a rebuild: the same rows read from where the tables are, as they lie there, and written to a SQLite
/// table without an index, as they are.
enum RawCopy: Sendable {
    /// From a SQLite file.
    case file(String)
    /// From a database of a cluster.
    case database(ClusterSpace)

    /// Rows of a transaction: as many as a rebuild's.
    private static let rowsOfTransaction = 4096

    /// Copies all rows to a file that is not there yet; how many they are, and the seconds it took.
    func run(to path: String) async throws -> (rows: Int, seconds: Double) {
        try await LoadThreads.run { [self] in
            let options = WriteOptions(synchronous: .normal, walAutocheckpoint: 16_000)
            let target = try Connection(path: path, access: .readWriteCreate(options))
            let result = Result {
                let start = SystemCall.nanoseconds()
                let rows =
                    switch self {
                    case .file(let source): try Self.copy(fileAt: source, to: target)
                    case .database(let space): try Self.copy(space, to: target)
                    }
                return (rows: rows, seconds: Double(SystemCall.nanoseconds() - start) / 1e9)
            }
            try target.close()
            return try result.get()
        }
    }

    private static func create(columns: Int, in target: Connection) throws {
        try target.execute("CREATE TABLE raw (\((0..<columns).map { "c\($0)" }.joined(separator: ", ")))")
    }

    private static func insertion(columns: Int) -> String {
        "INSERT INTO raw VALUES (\((1...columns).map { "?\($0)" }.joined(separator: ", ")))"
    }

    private static func copy(fileAt path: String, to target: Connection) throws -> Int {
        let source = try Connection(path: path, access: .readOnly)
        let result = Result {
            var rows = try source.prepare("SELECT * FROM note")
            let columns = rows.columnCount
            try create(columns: columns, in: target)
            var count = 0
            var isAtEnd = false
            while !isAtEnd {
                try target.transaction(.immediate) {
                    var insertion = try target.prepare(insertion(columns: columns))
                    for _ in 0..<rowsOfTransaction {
                        guard try rows.step() else {
                            isAtEnd = true
                            return
                        }
                        for column in 0..<columns { try copy(column, of: rows, to: &insertion) }
                        try insertion.run()
                        count += 1
                    }
                }
            }
            return count
        }
        try source.close()
        return try result.get()
    }

    private static func copy(
        _ column: Int, of row: borrowing Statement, to insertion: inout Statement
    ) throws {
        switch row.type(at: column) {
        case .integer: try insertion.bind(integer: try row.integer(at: column), at: column + 1)
        case .double: try insertion.bind(double: try row.double(at: column), at: column + 1)
        case .text: try row.withBytes(at: column) { try insertion.bind(text: $0, at: column + 1) }
        case .blob: try row.withBytes(at: column) { try insertion.bind(blob: $0, at: column + 1) }
        case .null: try insertion.bindNull(at: column + 1)
        }
    }

    private static func copy(_ space: ClusterSpace, to target: Connection) throws -> Int {
        try space.cluster.session { session in
            try session.execute("BEGIN READ ONLY; DECLARE raw NO SCROLL CURSOR FOR SELECT * FROM \(space.name).note")
            var count = 0
            while true {
                let page = try session.queryOnce("FETCH FORWARD \(rowsOfTransaction) FROM raw")
                if page.count == 0 { break }
                let columns = page.columns.count
                if count == 0 { try create(columns: columns, in: target) }
                // A result cannot go into a closure.
                try target.execute("BEGIN IMMEDIATE")
                var insertion = try target.prepare(insertion(columns: columns))
                for row in 0..<page.count {
                    for column in 0..<columns {
                        if page.isNull(row, column) {
                            try insertion.bindNull(at: column + 1)
                        } else {
                            try page.withBytes(row, column) { try insertion.bind(blob: $0.bytes, at: column + 1) }
                        }
                    }
                    try insertion.run()
                }
                try target.execute("COMMIT")
                count += page.count
            }
            try session.execute("COMMIT")
            return count
        }
    }
}
