import ThreadExecutor

package enum DatabaseCopy {
    /// Copies a snapshot of a database into a new file, on a thread of its own.
    ///
    /// Writers are not blocked; the write-ahead log grows until the copy is done.
    ///
    /// - Parameter copy: a path without a file; an existing file may be overwritten.
    /// - Throws: `SQLiteError`, `ThreadStartError`.
    package static func make(of path: String, at copy: String) async throws {
        let thread = try DedicatedThread(name: "weir-copy")
        let result: Result<Void, any Error>
        do {
            try await thread.run {
                let connection = try Connection(path: path, access: .readOnly)
                do {
                    try vacuum(connection, into: copy)
                } catch {
                    try connection.close()
                    throw error
                }
                try connection.close()
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await thread.close()
        try result.get()
    }

    private static func vacuum(_ connection: Connection, into copy: String) throws {
        var statement = try connection.prepare("VACUUM INTO ?1")
        try statement.bind(text: copy, at: 1)
        try statement.run()
    }
}
