/// A row of an observed query.
public struct ObservedRow: Equatable, Sendable {
    /// The names that the query gives its columns.
    public let columns: [String]
    /// The values, in the order of the columns.
    public let values: [SQLValue]

    /// The value of a column; `nil` if the query has none of this name.
    public subscript(column: String) -> SQLValue? { columns.firstIndex(of: column).map { values[$0] } }
}

extension Database {
    /// The rows of a query of the app with the names of their columns.
    package func observedRows(_ sql: String, _ arguments: [SQLValue] = []) throws -> [ObservedRow] {
        var columns: [String] = []
        var found: [ObservedRow] = []
        try statement(ofTheApp: sql).rows(arguments) { row in
            if columns.isEmpty { columns = (0..<row.count).map { row.name(at: $0) } }
            found.append(ObservedRow(columns: columns, values: (0..<row.count).map { row.value(at: $0) }))
        }
        return found
    }
}

extension Weir {
    /// The rows of a query, and again each time they have changed: by syncing at once, by the app's own connections as soon as
    /// Weir notices it (``SyncOptions/writeCheck``, while it is started; ``nudge()``).
    ///
    /// The query runs on Weir's connection with each change, so it should be one that takes milliseconds.
    ///
    /// - Parameters:
    ///   - sql: a query, which may not write.
    ///   - arguments: the values of its parameters.
    /// - Returns: a sequence that ends with ``close()``, and fails where the query does. While another connection has the file locked, it waits.
    public nonisolated func observe(
        _ sql: String, _ arguments: [SQLValue] = []
    ) -> AsyncThrowingStream<[ObservedRow], any Error> {
        updates { try $0.rows(of: sql, arguments) }
    }

    /// What a closure reads of the file, and again each time it has changed.
    ///
    /// - Parameter read: returns `nil` while there is nothing to read.
    nonisolated func updates<Value: Equatable & Sendable>(
        _ read: @escaping @Sendable (isolated Weir) throws -> Value?
    ) -> AsyncThrowingStream<Value, any Error> {
        let (values, observer) = AsyncThrowingStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let changes = changes.stream()
        let task = Task { [weak self] in
            var last: Value?
            do {
                for await _ in changes {
                    let found = try await whenUnlocked { [weak self] () -> Value? in
                        guard let weir = self else { return nil }
                        return try await read(weir)
                    }
                    guard let found else { continue }
                    if found != last { observer.yield(found) }
                    last = found
                }
                observer.finish()
            } catch {
                observer.finish(throwing: error)
            }
        }
        observer.onTermination = { _ in task.cancel() }
        return values
    }

    /// The rows of a query; `nil` while Weir is suspended.
    private func rows(of sql: String, _ arguments: [SQLValue]) throws -> [ObservedRow]? {
        if isSuspended { return nil }
        let database = try openFile.database
        try database.run("PRAGMA query_only = ON")
        defer { allowWrites(database) }
        return try database.observedRows(sql, arguments)
    }

    private func allowWrites(_ database: Database) {
        do {
            try database.run("PRAGMA query_only = OFF")
        } catch {
            // It changes a flag of the connection, for which nothing is read or written.
            assertionFailure("\(error)")
        }
    }
}

/// Reads what somebody waits for, after a moment again where another connection has the file locked for longer than a statement waits,
/// such as for an import: nothing may say later that it can be read.
func whenUnlocked<Value: Sendable>(_ read: @Sendable () async throws -> Value) async throws -> Value {
    while true {
        do {
            return try await read()
        } catch let error as WeirError where error.isLock {
            try await Task.sleep(for: .seconds(1))
        }
    }
}
