import OwnerFileStore
import SQLite
import SyncModel

/// Owners' files in an SQLite file of its own: that of `weir run`.
///
/// A power failure may lose its newest transactions, and an owner has the file before. The SQLite file may be removed while no process uses
/// it: devices then start without a file.
package final class SQLiteOwnerFileStore: OwnerFileStore {
    /// "weif" in ASCII.
    private static let applicationID: Int32 = 0x7765_6966
    private static let format: Int32 = 1

    private let path: String
    private let writer: DatabaseWriter
    private let statements: OwnerFileStatements

    private init(path: String, writer: DatabaseWriter, _ statements: OwnerFileStatements) {
        self.path = path
        self.writer = writer
        self.statements = statements
    }

    /// Opens the file and creates it if it is missing; its folder must exist.
    ///
    /// Uploads that an earlier process has not completed are removed.
    ///
    /// - Parameter epoch: of the history; files of another one do not count.
    package static func open(
        path: String, epoch: String, limits: OwnerFileLimits
    ) async throws(OwnerFileError) -> SQLiteOwnerFileStore {
        do {
            let writer = try await DatabaseWriter.open(
                path: path, write: WriteOptions(pageSize: 16_384), options: ConnectionOptions(cacheSize: 2 << 20))
            let store = SQLiteOwnerFileStore(
                path: path, writer: writer, OwnerFileStatements(epoch: epoch, limits: limits))
            do {
                try await writer.write { try prepare($0) }
                try await store.collect(idleFor: 0)
            } catch {
                await store.close()
                throw error
            }
            return store
        } catch {
            throw Self.failure(error, path)
        }
    }

    private static func prepare(_ connection: Connection) throws {
        let application = try connection.integer("PRAGMA application_id")
        let found = try connection.userVersion()
        if application == 0, found == 0, try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 {
            for table in OwnerFileStatements.tables { try connection.execute(table) }
            try connection.execute("PRAGMA application_id = \(applicationID)")
            return try connection.setUserVersion(format)
        }
        guard application == Int64(applicationID), found == format else {
            throw OwnerFileError(
                .unavailable,
                "\(connection.path) holds no owners' files that this version knows: move it away, and a new one is made"
            )
        }
    }

    package func file(of owner: SyncID) async throws(OwnerFileError) -> OwnerFile? {
        try await write { [statements] in try statements.file(of: owner, $0) }
    }

    package func begin(_ device: Device, byteCount: Int) async throws(OwnerFileError) -> OwnerFileUpload {
        let replaced = try await write { [statements] in try statements.markRemoved(uploadsOf: device, $0) }
        for generation in replaced { try await remove(generation) }
        return try await write { [statements] in try statements.begin(device, byteCount, $0) }
    }

    package func append(
        _ chunk: [UInt8], number: Int, to upload: OwnerFileUpload
    ) async throws(OwnerFileError) {
        try await write { [statements] in try statements.append(chunk, number, to: upload, $0) }
    }

    package func commit(
        _ upload: OwnerFileUpload, newest: TimeStamp, digest: [UInt8]
    ) async throws(OwnerFileError) -> OwnerFileCommit {
        let (result, replaced) = try await write { [statements] in
            try statements.commit(upload, newest, digest, $0)
        }
        do throws(OwnerFileError) {
            for generation in replaced { try await remove(generation) }
        } catch {
            // The upload has its result, and what is left is marked: `collect` removes it.
        }
        return result
    }

    package func discard(_ upload: OwnerFileUpload) async throws(OwnerFileError) {
        try await write { [statements] in try statements.markRemoved(upload, $0) }
        try await remove(upload.generation)
    }

    package func chunk(_ number: Int, of file: OwnerFile) async throws(OwnerFileError) -> [UInt8]? {
        try await write { [statements] in try statements.chunk(number, of: file, $0) }
    }

    package func remove(_ owner: SyncID) async throws(OwnerFileError) -> Bool {
        let (hadFile, generations) = try await write { [statements] in try statements.remove(owner, $0) }
        for generation in generations { try await remove(generation) }
        return hadFile
    }

    package func collect(idleFor seconds: Int) async throws(OwnerFileError) {
        let generations = try await write { [statements] in try statements.markRemoved(idleFor: seconds, $0) }
        for generation in generations { try await remove(generation) }
    }

    /// Removes the chunks of a generation that is marked so, in short transactions.
    private func remove(_ generation: Int64) async throws(OwnerFileError) {
        while try await write({ [statements] in try statements.removeChunks(of: generation, $0) }) {}
    }

    private func write<Value: Sendable>(
        _ body: @Sendable (Connection) throws -> Value
    ) async throws(OwnerFileError) -> Value {
        do {
            return try await writer.write(body)
        } catch {
            throw Self.failure(error, path)
        }
    }

    private static func failure(_ error: any Error, _ path: String) -> OwnerFileError {
        if let error = error as? OwnerFileError { return error }
        if let error = error as? SQLiteError, error.isFull {
            return OwnerFileError(.full, "\(path): \(error)")
        }
        return OwnerFileError(.unavailable, "\(path): \(error)")
    }

    package func close() async {
        do {
            try await writer.close()
        } catch {
            // What was committed is in the file or its log, and the next start finds it there.
            return
        }
    }
}
