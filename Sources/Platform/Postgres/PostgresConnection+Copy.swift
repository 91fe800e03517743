import CPostgres

extension PostgresConnection {
    /// Runs `COPY … FROM STDIN (FORMAT binary)`.
    ///
    /// - Parameter rows: in binary format, with header and trailer.
    /// - Throws: `PostgresError`; then no row was inserted.
    package func copy(_ sql: String, _ rows: [UInt8]) throws(PostgresError) {
        try beginCopy(sql)
        for start in stride(from: 0, to: rows.count, by: Self.chunkSize) {
            let chunk = rows[start..<min(start + Self.chunkSize, rows.count)]
            let isSent = chunk.withUnsafeBytes { raw in
                raw.withMemoryRebound(to: CChar.self) { PQputCopyData(handle, $0.baseAddress, Int32($0.count)) }
            }
            // The session is blocking, so any other result than 1 means that it is lost.
            guard isSent == 1 else { throw failure(isLost: true) }
        }
        guard PQputCopyEnd(handle, nil) == 1 else { throw failure(isLost: true) }
        _ = try lastResult()
    }

    /// In bytes; libpq's buffer grows with it.
    private static let chunkSize = 1 << 20

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
            throw PostgresError(message: "the statement sends rows to the client", isConnectionLost: true)
        default:
            while let more = PQgetResult(handle) { PQclear(more) }
            throw PostgresError(message: "the statement reads no rows from the client")
        }
    }
}
