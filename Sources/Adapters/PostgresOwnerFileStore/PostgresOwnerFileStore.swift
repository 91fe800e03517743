import OwnerFileStore
import Postgres
import PostgresRecordStore
import SyncModel

/// Owners' files in Postgres, in the database of the owner's partition.
///
/// A migration of the tables makes theirs. Sessions open on demand, and an unreachable server is an error of each call.
package final class PostgresOwnerFileStore: OwnerFileStore {
    private struct Shard {
        let database: String
        let pool: PostgresPool
    }

    /// Sessions with each database; a chunk takes some milliseconds.
    private static let connections = 2

    private let shards: [Shard]
    private let statements: OwnerFileStatements
    private let partitioning: Partitioning

    private init(_ shards: [Shard], _ statements: OwnerFileStatements, _ partitioning: Partitioning) {
        self.shards = shards
        self.statements = statements
        self.partitioning = partitioning
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
        var shards: [Shard] = []
        do {
            for number in configuration.shards.indices {
                let parameters = configuration.sessionParameters(number)
                shards.append(
                    Shard(
                        database: parameters.description,
                        pool: try await PostgresPool.start(
                            parameters, count: connections, connectTimeout: configuration.connectTimeout,
                            waitingLimit: 256, name: "postgres-files-\(number)"
                        ) { try $0.execute(OwnerFileStatements.session) }))
            }
        } catch {
            for shard in shards { await shard.pool.close() }
            throw OwnerFileError(.unavailable, "the threads of owners' files cannot be started: \(error)")
        }
        return PostgresOwnerFileStore(
            shards, OwnerFileStatements(epoch: epoch, limits: limits, tables: configuration.ownerFileTables),
            Partitioning(count: partitions))
    }

    package func file(of owner: SyncID) async throws(OwnerFileError) -> OwnerFile? {
        try await perform(number(of: owner)) { [statements] in try statements.file(of: owner, $0) }
    }

    package func begin(_ device: Device, byteCount: Int) async throws(OwnerFileError) -> OwnerFileUpload {
        let shard = number(of: device.caller)
        let replaced = try await transaction(shard) { [statements] in
            try statements.markRemoved(uploadsOf: device, $0)
        }
        for generation in replaced { try await remove(generation, shard) }
        return try await transaction(shard) { [statements] in try statements.begin(device, byteCount, $0) }
    }

    package func append(
        _ chunk: [UInt8], number: Int, to upload: OwnerFileUpload
    ) async throws(OwnerFileError) {
        try await transaction(self.number(of: upload.owner)) { [statements] in
            try statements.append(chunk, number, to: upload, $0)
        }
    }

    package func commit(
        _ upload: OwnerFileUpload, newest: TimeStamp, digest: [UInt8]
    ) async throws(OwnerFileError) -> OwnerFileCommit {
        let shard = number(of: upload.owner)
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
        let shard = number(of: upload.owner)
        try await transaction(shard) { [statements] in try statements.markRemoved(upload, $0) }
        try await remove(upload.generation, shard)
    }

    package func chunk(_ number: Int, of file: OwnerFile) async throws(OwnerFileError) -> [UInt8]? {
        try await perform(self.number(of: file.owner)) { [statements] in try statements.chunk(number, of: file, $0) }
    }

    package func remove(_ owner: SyncID) async throws(OwnerFileError) -> Bool {
        let shard = number(of: owner)
        let (hadFile, generations) = try await transaction(shard) { [statements] in try statements.remove(owner, $0) }
        for generation in generations { try await remove(generation, shard) }
        return hadFile
    }

    package func collect(idleFor seconds: Int) async throws(OwnerFileError) {
        var failure: OwnerFileError?
        // A database that is away keeps nothing of the others from being removed.
        for shard in shards.indices {
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
        for shard in shards { await shard.pool.close() }
    }

    private func number(of owner: SyncID) -> Int {
        partitioning.partition(of: owner) % shards.count
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

    /// Runs a closure, and repeats it once if its session is lost: a server restart ends all sessions.
    private func perform<Value: Sendable>(
        _ number: Int, _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(OwnerFileError) -> Value {
        let shard = shards[number]
        do {
            do {
                return try await shard.pool.perform(body)
            } catch let error as PostgresError where error.isConnectionLost {
                // What was committed and not acknowledged makes the repeat fail, as the loss does.
                return try await shard.pool.perform(body)
            }
        } catch let error as OwnerFileError {
            throw error
        } catch let error as PostgresError where error.sqlState == .diskFull {
            throw OwnerFileError(.full, "\(shard.database): \(error)")
        } catch {
            throw OwnerFileError(.unavailable, "\(shard.database): \(error)")
        }
    }
}
