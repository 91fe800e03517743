import CPostgres

extension PostgresConnection {
    /// Has the server read rows from this session: `COPY … FROM STDIN (FORMAT binary)`.
    ///
    /// - Parameters:
    ///   - sql: the statement.
    ///   - rows: what it reads, in Postgres's binary format for copies, header and trailer included.
    /// - Throws: `PostgresError`; then no row of it is in the table.
    package func copy(_ sql: String, _ rows: [UInt8]) throws(PostgresError) {
        try beginCopy(sql)
        for start in stride(from: 0, to: rows.count, by: Self.copyPiece) {
            let piece = rows[start..<min(start + Self.copyPiece, rows.count)]
            let isSent = piece.withUnsafeBytes { raw in
                raw.withMemoryRebound(to: CChar.self) { PQputCopyData(handle, $0.baseAddress, Int32($0.count)) }
            }
            // The session blocks until a piece is taken, so anything else than 1 is its end.
            guard isSent == 1 else { throw failure(isLost: true) }
        }
        guard PQputCopyEnd(handle, nil) == 1 else { throw failure(isLost: true) }
        _ = try answer()
    }

    /// What the client library takes at once; its buffer grows with it.
    private static let copyPiece = 1 << 20

    private func beginCopy(_ sql: String) throws(PostgresError) {
        guard PQsendQuery(handle, sql) == 1, let result = PQgetResult(handle) else { throw failure() }
        defer { PQclear(result) }
        switch PQresultStatus(result) {
        case PGRES_COPY_IN: return
        case PGRES_FATAL_ERROR:
            let error = error(of: result)
            while let more = PQgetResult(handle) { PQclear(more) }
            throw error
        case PGRES_COPY_OUT, PGRES_COPY_BOTH:
            throw PostgresError(message: "the statement sends rows to its session", isConnectionLost: true)
        default:
            while let more = PQgetResult(handle) { PQclear(more) }
            throw PostgresError(message: "the statement reads no rows from its session")
        }
    }
}
