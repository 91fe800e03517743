import OwnerFileStore
import Postgres
import PostgresRecordStore
import SyncModel

/// The statements over the tables of owners' files; each method is part of one transaction.
///
/// Transactions about one owner take turns: each takes the owner's lock first.
struct OwnerFileStatements: Sendable {
    let epoch: String
    let limits: OwnerFileLimits
    private let tables: OwnerFileTables

    /// Chunks of one transaction of a removal.
    private static let removedAtOnce = 16
    /// The first half of the keys of owners' locks; "weif" in ASCII.
    private static let lockSpace = 0x7765_6966

    init(epoch: String, limits: OwnerFileLimits, tables: OwnerFileTables) {
        self.epoch = epoch
        self.limits = limits
        self.tables = tables
    }

    private func lock(_ owner: SyncID, _ connection: PostgresConnection) throws {
        var parameters = PostgresParameters()
        parameters.append(owner.text)
        _ = try connection.query(
            "SELECT pg_catalog.pg_advisory_xact_lock(\(Self.lockSpace), pg_catalog.hashtext($1::text))", parameters)
    }

    func file(of owner: SyncID, _ connection: PostgresConnection) throws -> OwnerFile? {
        guard let found = try anyFile(of: owner, connection), found.epoch == epoch else { return nil }
        return found.file
    }

    private func anyFile(
        of owner: SyncID, _ connection: PostgresConnection
    ) throws -> (epoch: String, file: OwnerFile)? {
        var parameters = PostgresParameters()
        parameters.append(owner.text)
        let rows = try connection.query(
            "SELECT epoch, generation, bytes, newest, digest FROM \(tables.files) WHERE owner = $1::text", parameters)
        guard rows.count > 0 else { return nil }
        guard let newest = TimeStamp(rawValue: try rows.bigint(0, 3)) else {
            throw OwnerFileError(.unavailable, "an owner's file has an invalid time")
        }
        let file = OwnerFile(
            owner: owner, generation: try rows.bigint(0, 1), byteCount: Int(try rows.bigint(0, 2)), newest: newest,
            digest: rows.bytes(0, 4))
        return (try rows.text(0, 0), file)
    }

    // MARK: Uploads

    func begin(_ device: Device, _ byteCount: Int, _ connection: PostgresConnection) throws -> OwnerFileUpload {
        let owner = device.caller
        try lock(owner, connection)
        var ofOwner = PostgresParameters()
        ofOwner.append(owner.text)
        let count = try connection.query(
            "SELECT count(*) FROM \(tables.uploads) WHERE owner = $1::text AND NOT removed", ofOwner)
        guard try count.bigint(0, 0) < limits.uploadsOfOwner else {
            throw OwnerFileError(.tooManyUploads, "the owner has \(limits.uploadsOfOwner) unfinished uploads")
        }
        var parameters = PostgresParameters()
        parameters.append(owner.text)
        parameters.append(device.knowledgeID.text)
        parameters.append(Int64(byteCount))
        let inserted = try connection.query(
            """
            INSERT INTO \(tables.uploads) (owner, device, bytes, touched, removed)
            VALUES ($1::text, $2::text, $3::bigint, pg_catalog.now(), false) RETURNING generation
            """, parameters)
        // Last, since all owners' transactions take turns at it.
        try reserve(byteCount, connection)
        return OwnerFileUpload(owner: owner, generation: try inserted.bigint(0, 0), byteCount: byteCount)
    }

    private func reserve(_ byteCount: Int, _ connection: PostgresConnection) throws {
        var parameters = PostgresParameters()
        parameters.append(Int64(byteCount))
        parameters.append(Int64(limits.totalBytes))
        let update = """
            UPDATE \(tables.usage) SET bytes = bytes + $1::bigint WHERE bytes + $1::bigint <= $2::bigint RETURNING bytes
            """
        if try connection.query(update, parameters).count > 0 { return }
        _ = try connection.query(
            "INSERT INTO \(tables.usage) (id, bytes) VALUES (0, 0) ON CONFLICT (id) DO NOTHING")
        if try connection.query(update, parameters).count > 0 { return }
        throw OwnerFileError(.full, "owners' files have reached \(limits.totalBytes) bytes")
    }

    func append(
        _ chunk: [UInt8], _ number: Int, to upload: OwnerFileUpload, _ connection: PostgresConnection
    ) throws {
        let touched = try connection.query(
            """
            UPDATE \(tables.uploads) SET touched = pg_catalog.now() WHERE generation = $1::bigint AND NOT removed
            RETURNING generation
            """, Self.parameters(upload.generation))
        guard touched.count > 0 else { throw Self.isGone }
        var content = BinaryArray(.bytea)
        content.append(bytes: chunk.span)
        var parameters = PostgresParameters([content])
        parameters.append(upload.generation)
        parameters.append(Int64(number))
        _ = try connection.query(
            """
            INSERT INTO \(tables.chunks) (generation, number, content)
            VALUES ($2::bigint, $3::bigint, ($1::bytea[])[1])
            """, parameters)
    }

    /// - Returns: the generations that must be removed, too.
    func commit(
        _ upload: OwnerFileUpload, _ newest: TimeStamp, _ digest: [UInt8], _ connection: PostgresConnection
    ) throws -> (OwnerFileCommit, [Int64]) {
        try connection.execute("SET LOCAL synchronous_commit = on")
        try lock(upload.owner, connection)
        let current = try anyFile(of: upload.owner, connection)
        if let current, current.epoch == epoch, current.file.newest > newest {
            try markRemoved(upload, connection)
            return (.older(than: current.file), [upload.generation])
        }
        let completed = try connection.query(
            "DELETE FROM \(tables.uploads) WHERE generation = $1::bigint AND NOT removed RETURNING generation",
            Self.parameters(upload.generation))
        guard completed.count > 0 else { throw Self.isGone }
        if let current { try markRemoved(current.file, connection) }
        var content = BinaryArray(.bytea)
        content.append(bytes: digest.span)
        var parameters = PostgresParameters([content])
        parameters.append(upload.owner.text)
        parameters.append(epoch)
        for number in [upload.generation, Int64(upload.byteCount), newest.rawValue] { parameters.append(number) }
        _ = try connection.query(
            """
            INSERT INTO \(tables.files) (owner, epoch, generation, bytes, newest, digest)
            VALUES ($2::text, $3::text, $4::bigint, $5::bigint, $6::bigint, ($1::bytea[])[1])
            ON CONFLICT (owner) DO UPDATE SET epoch = excluded.epoch, generation = excluded.generation,
                bytes = excluded.bytes, newest = excluded.newest, digest = excluded.digest
            """, parameters)
        let file = OwnerFile(
            owner: upload.owner, generation: upload.generation, byteCount: upload.byteCount, newest: newest,
            digest: digest)
        return (.stored(file), current.map { [$0.file.generation] } ?? [])
    }

    func chunk(_ number: Int, of file: OwnerFile, _ connection: PostgresConnection) throws -> [UInt8]? {
        var parameters = PostgresParameters()
        parameters.append(file.owner.text)
        parameters.append(file.generation)
        parameters.append(Int64(number))
        // Of a file that is being removed, some chunks may be there still.
        let rows = try connection.query(
            """
            SELECT c.content FROM \(tables.files) AS f JOIN \(tables.chunks) AS c ON c.generation = f.generation
            WHERE f.owner = $1::text AND f.generation = $2::bigint AND c.number = $3::bigint
            """, parameters)
        return rows.count == 0 ? nil : rows.bytes(0, 0)
    }

    // MARK: Removal

    func markRemoved(_ upload: OwnerFileUpload, _ connection: PostgresConnection) throws {
        _ = try connection.query(
            "UPDATE \(tables.uploads) SET removed = true WHERE generation = $1::bigint",
            Self.parameters(upload.generation))
    }

    /// - Returns: the generations.
    func markRemoved(uploadsOf device: Device, _ connection: PostgresConnection) throws -> [Int64] {
        var parameters = PostgresParameters()
        parameters.append(device.caller.text)
        parameters.append(device.knowledgeID.text)
        return try Self.numbers(
            connection.query(
                """
                UPDATE \(tables.uploads) SET removed = true
                WHERE owner = $1::text AND device = $2::text AND NOT removed RETURNING generation
                """, parameters))
    }

    /// Marks uploads without a chunk for so many seconds.
    ///
    /// - Returns: all marked generations.
    func markRemoved(idleFor seconds: Int, _ connection: PostgresConnection) throws -> [Int64] {
        _ = try connection.query(
            """
            UPDATE \(tables.uploads) SET removed = true
            WHERE NOT removed AND touched <= pg_catalog.now() - $1::bigint * interval '1 second'
            """, Self.parameters(Int64(seconds)))
        return try Self.numbers(connection.query("SELECT generation FROM \(tables.uploads) WHERE removed"))
    }

    private func markRemoved(_ file: OwnerFile, _ connection: PostgresConnection) throws {
        var parameters = PostgresParameters()
        parameters.append(file.owner.text)
        parameters.append(file.generation)
        parameters.append(Int64(file.byteCount))
        _ = try connection.query(
            """
            INSERT INTO \(tables.uploads) (generation, owner, device, bytes, touched, removed)
            OVERRIDING SYSTEM VALUE VALUES ($2::bigint, $1::text, '', $3::bigint, pg_catalog.now(), true)
            """, parameters)
    }

    /// - Returns: whether there was a file of this history, and what must be removed.
    func remove(_ owner: SyncID, _ connection: PostgresConnection) throws -> (hadFile: Bool, generations: [Int64]) {
        try lock(owner, connection)
        var parameters = PostgresParameters()
        parameters.append(owner.text)
        let current = try anyFile(of: owner, connection)
        if let current {
            try markRemoved(current.file, connection)
            _ = try connection.query("DELETE FROM \(tables.files) WHERE owner = $1::text", parameters)
        }
        let generations = try Self.numbers(
            connection.query(
                "UPDATE \(tables.uploads) SET removed = true WHERE owner = $1::text RETURNING generation", parameters))
        return (current?.epoch == epoch, generations)
    }

    /// Removes some chunks of a marked generation, and its entry with the last one.
    ///
    /// - Returns: whether more are left.
    func removeChunks(of generation: Int64, _ connection: PostgresConnection) throws -> Bool {
        let removed = try connection.query(
            """
            DELETE FROM \(tables.chunks) WHERE generation = $1::bigint AND number IN (
                SELECT number FROM \(tables.chunks) WHERE generation = $1::bigint LIMIT \(Self.removedAtOnce))
            RETURNING number
            """, Self.parameters(generation))
        if removed.count == Self.removedAtOnce { return true }
        // Another gateway may remove the same, and one of the two gets the entry.
        let freed = try Self.numbers(
            connection.query(
                "DELETE FROM \(tables.uploads) WHERE generation = $1::bigint AND removed RETURNING bytes",
                Self.parameters(generation)))
        for bytes in freed {
            _ = try connection.query(
                "UPDATE \(tables.usage) SET bytes = bytes - $1::bigint", Self.parameters(bytes))
        }
        return false
    }

    private static func parameters(_ number: Int64) -> PostgresParameters {
        var parameters = PostgresParameters()
        parameters.append(number)
        return parameters
    }

    private static func numbers(_ rows: borrowing PostgresResult) throws -> [Int64] {
        var numbers: [Int64] = []
        for row in 0..<rows.count { numbers.append(try rows.bigint(row, 0)) }
        return numbers
    }

    private static var isGone: OwnerFileError {
        OwnerFileError(.gone, "the upload was replaced by another one of the device, or took too long")
    }
}
