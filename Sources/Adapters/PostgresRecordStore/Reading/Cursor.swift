import Postgres

/// Reads a query in pages of about a megabyte.
final class Cursor {
    /// In rows; few for the first page, when the size of the rows is unknown.
    private var pageCount = 64
    private let connection: PostgresConnection
    private let notice: MigrationNotice
    private let name: String

    init(_ connection: PostgresConnection, _ notice: MigrationNotice, name: String, _ query: String) throws {
        self.connection = connection
        self.notice = notice
        self.name = name
        try connection.execute("DECLARE \(name) NO SCROLL CURSOR FOR \(query)")
    }

    /// The next page, which is empty at the end.
    func next() throws -> PostgresResult {
        try notice.check(connection)
        return try connection.queryOnce("FETCH FORWARD \(pageCount) FROM \(name)")
    }

    /// Sets the next page's number of rows by the average size of this page's.
    func adaptPageSize(rows: Int, bytes: Int) {
        guard rows > 0 else { return }
        pageCount = min(max((1 << 20) / max(bytes / rows, 1), 1), 1000)
    }
}
