import OwnerFileStore
import Postgres
import PostgresRecordStore
import SyncModel

/// Owners' files in Postgres, in the database of the owner's partition.
///
/// A migration of the tables makes theirs. Sessions open on demand, and an unreachable server is an error of each call.
package final class PostgresOwnerFileStore: OwnerFileStore {
    private let sessions: OwnerSessions
    private let statements: OwnerFileStatements

    private init(_ sessions: OwnerSessions, _ statements: OwnerFileStatements) {
        self.sessions = sessions
        self.statements = statements
    }

    /// Does not connect yet.
    ///
    /// - Parameters:
    ///   - configuration: of the databases that hold the tables.
    ///   - epoch: of the history; files of another one do not count.
    ///   - partitions: of the history.
    ///   - limits: of each database.
    package static func open(
        _ configuration: PostgresRecordStoreConfiguration, epoch: String, partitions: Int, limits: OwnerFileLimits
    ) async throws(OwnerFileError) -> PostgresOwnerFileStore {
        let sessions: OwnerSessions
        do {
            // Each may hold a chunk.
            sessions = try await .start(
                configuration, partitions: partitions, waitingLimit: 256, name: "postgres-files")
        } catch {
            throw OwnerFileError(.unavailable, "the threads of owners' files cannot be started: \(error)")
        }
        return PostgresOwnerFileStore(
            sessions, OwnerFileStatements(epoch: epoch, limits: limits, tables: configuration.ownerFileTables))
    }

    package func file(of owner: SyncID) async throws(OwnerFileError) -> OwnerFile? {
        try await perform(sessions.number(of: owner)) { [statements] in try statements.file(of: owner, $0) }
    }

    package func begin(_ device: Device, byteCount: Int) async throws(OwnerFileError) -> OwnerFileUpload {
        let shard = sessions.number(of: device.caller)
        let replaced = try await transaction(shard) { [statements] in
            try statements.markRemoved(uploadsOf: device, $0)
        }
        for generation in replaced { try await remove(generation, shard) }
        return try await transaction(shard) { [statements] in try statements.begin(device, byteCount, $0) }
    }

    package func append(
        _ chunk: [UInt8], number: Int, to upload: OwnerFileUpload
    ) async throws(OwnerFileError) {
        try await transaction(sessions.number(of: upload.owner)) { [statements] in
            try statements.append(chunk, number, to: upload, $0)
        }
    }

    package func commit(
        _ upload: OwnerFileUpload, newest: TimeStamp, digest: [UInt8]
    ) async throws(OwnerFileError) -> OwnerFileCommit {
        let shard = sessions.number(of: upload.owner)
        let (result, replaced) = try await transaction(shard) { [statements] in
            try statements.commit(upload, newest, digest, $0)
        }
        do throws(OwnerFileError) {
            for generation in replaced { try await remove(generation, shard) }
        } catch {
            // The upload has its result, and what is left is marked: `collect` removes it.
        }
        return result
    }

    package func discard(_ upload: OwnerFileUpload) async throws(OwnerFileError) {
        let shard = sessions.number(of: upload.owner)
        try await transaction(shard) { [statements] in try statements.markRemoved(upload, $0) }
        try await remove(upload.generation, shard)
    }

    package func chunk(_ number: Int, of file: OwnerFile) async throws(OwnerFileError) -> [UInt8]? {
        try await perform(sessions.number(of: file.owner)) { [statements] in try statements.chunk(number, of: file, $0)
        }
    }

    package func remove(_ owner: SyncID) async throws(OwnerFileError) -> Bool {
        let shard = sessions.number(of: owner)
        let (hadFile, generations) = try await transaction(shard) { [statements] in try statements.remove(owner, $0) }
        for generation in generations { try await remove(generation, shard) }
        return hadFile
    }

    package func collect(idleFor seconds: Int) async throws(OwnerFileError) {
        var failure: OwnerFileError?
        // A database that is away keeps nothing of the others from being removed.
        for shard in sessions.indices {
            do throws(OwnerFileError) {
                let generations = try await transaction(shard) { [statements] in
                    try statements.markRemoved(idleFor: seconds, $0)
                }
                for generation in generations { try await remove(generation, shard) }
            } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Removes the chunks of a generation that is marked so, in short transactions.
    private func remove(_ generation: Int64, _ shard: Int) async throws(OwnerFileError) {
        while try await transaction(shard, { [statements] in try statements.removeChunks(of: generation, $0) }) {}
    }

    package func close() async {
        await sessions.close()
    }

    private func transaction<Value: Sendable>(
        _ number: Int, _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(OwnerFileError) -> Value {
        try await perform(number) { connection in
            try connection.execute("BEGIN")
            let value = try body(connection)
            try connection.execute("COMMIT")
            return value
        }
    }

    /// What was committed and not acknowledged makes the repeat of ``OwnerSessions/perform(_:_:)`` fail, as the loss does.
    private func perform<Value: Sendable>(
        _ number: Int, _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(OwnerFileError) -> Value {
        do {
            return try await sessions.perform(number, body)
        } catch let error as OwnerFileError {
            throw error
        } catch let error as PostgresError where error.sqlState == .diskFull {
            throw OwnerFileError(.full, "\(sessions.name(number)): \(error)")
        } catch {
            throw OwnerFileError(.unavailable, "\(sessions.name(number)): \(error)")
        }
    }
}
