import LoadTools
import Postgres
import SQLite

/// The baseline of a rebuild: the same rows read in table order and written unchanged to a SQLite table without an index.
enum RawCopy: Sendable {
    case file(String)
    case database(ClusterSpace)

    /// As many as a rebuild writes in a transaction.
    private static let rowsOfTransaction = 4096

    /// Copies all rows to a new file; returns how many, and the seconds it took.
    func run(to path: String) async throws -> (value: Int, seconds: Double) {
        try await LoadThreads.run { [self] in
            let options = WriteOptions(synchronous: .normal, walAutocheckpoint: 16_000)
            let target = try Connection(path: path, access: .readWriteCreate(options))
            let result = Result {
                try SystemCall.timed {
                    switch self {
                    case .file(let source): try Self.copy(fileAt: source, to: target)
                    case .database(let space): try Self.copy(space, to: target)
                    }
                }
            }
            try target.close()
            return try result.get()
        }
    }

    /// Makes the target's table and returns the statement that inserts a row.
    private static func insertion(columns: Int, into target: Connection) throws -> Statement {
        try target.execute("CREATE TABLE raw (\((0..<columns).map { "c\($0)" }.joined(separator: ", ")))")
        return try target.prepare(
            "INSERT INTO raw VALUES (\((1...columns).map { "?\($0)" }.joined(separator: ", ")))")
    }

    private static func copy(fileAt path: String, to target: Connection) throws -> Int {
        let source = try Connection(path: path, access: .readOnly)
        let result = Result {
            var rows = try source.prepare("SELECT * FROM note")
            let columns = rows.columnCount
            var insertion = try insertion(columns: columns, into: target)
            var count = 0
            try target.execute("BEGIN IMMEDIATE")
            while try rows.step() {
                for column in 0..<columns { try copy(column, of: rows, to: &insertion) }
                try insertion.run()
                count += 1
                if count % rowsOfTransaction == 0 { try target.execute("COMMIT; BEGIN IMMEDIATE") }
            }
            try target.execute("COMMIT")
            return count
        }
        try source.close()
        return try result.get()
    }

    private static func copy(_ column: Int, of row: borrowing Statement, to insertion: inout Statement) throws {
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
            var page = try session.queryOnce("FETCH FORWARD \(rowsOfTransaction) FROM raw")
            let columns = page.columns.count
            var insertion = try insertion(columns: columns, into: target)
            var count = 0
            while page.count > 0 {
                try target.execute("BEGIN IMMEDIATE")
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
                page = try session.queryOnce("FETCH FORWARD \(rowsOfTransaction) FROM raw")
            }
            try session.execute("COMMIT")
            return count
        }
    }
}
