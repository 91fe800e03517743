import OwnerFileStore
import SQLite
import SyncModel

/// The statements over the tables of owners' files; each method is part of one transaction.
struct OwnerFileStatements: Sendable {
    let epoch: String
    let limits: OwnerFileLimits

    /// Chunks of one transaction of a removal, as in its statement.
    private static let removedAtOnce = 16

    static let tables = [
        """
        CREATE TABLE owner_files (
            owner TEXT NOT NULL PRIMARY KEY,
            epoch TEXT NOT NULL,
            generation INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            newest INTEGER NOT NULL,
            digest BLOB NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        // Uploads that are not completed, and generations that are being removed.
        """
        CREATE TABLE file_uploads (
            generation INTEGER PRIMARY KEY AUTOINCREMENT,
            owner TEXT NOT NULL,
            device TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            touched INTEGER NOT NULL,
            removed INTEGER NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE file_chunks (
            generation INTEGER NOT NULL,
            number INTEGER NOT NULL,
            content BLOB NOT NULL,
            UNIQUE (generation, number)
        ) STRICT
        """,
        // The bytes of both, whether they are stored yet or not.
        "CREATE TABLE file_usage (bytes INTEGER NOT NULL) STRICT", "INSERT INTO file_usage VALUES (0)",
    ]

    func file(of owner: SyncID, _ connection: Connection) throws -> OwnerFile? {
        guard let found = try anyFile(of: owner, connection), found.epoch == epoch else { return nil }
        return found.file
    }

    private func anyFile(of owner: SyncID, _ connection: Connection) throws -> (epoch: String, file: OwnerFile)? {
        var statement = try connection.statement(
            "SELECT epoch, generation, bytes, newest, digest FROM owner_files WHERE owner = ?1")
        try statement.bind(text: owner.text, at: 1)
        guard try statement.step() else { return nil }
        guard let newest = TimeStamp(rawValue: try statement.integer(at: 3)) else {
            throw OwnerFileError(.unavailable, "an owner's file has an invalid time")
        }
        let file = OwnerFile(
            owner: owner, generation: try statement.integer(at: 1), byteCount: Int(try statement.integer(at: 2)),
            newest: newest, digest: try statement.bytes(at: 4))
        return (try statement.text(at: 0), file)
    }

    // MARK: Uploads

    func begin(_ device: Device, _ byteCount: Int, _ connection: Connection) throws -> OwnerFileUpload {
        let owner = device.caller
        var count = try connection.statement("SELECT count(*) FROM file_uploads WHERE owner = ?1 AND removed = 0")
        try count.bind(text: owner.text, at: 1)
        guard try count.step(), try count.integer(at: 0) < limits.uploadsOfOwner else {
            throw OwnerFileError(.tooManyUploads, "the owner has \(limits.uploadsOfOwner) unfinished uploads")
        }
        count.reset()
        let used = try connection.integer("SELECT bytes FROM file_usage")
        guard byteCount <= limits.totalBytes - Int(used) else {
            throw OwnerFileError(.full, "owners' files have \(used) of \(limits.totalBytes) bytes")
        }
        try addUsage(Int64(byteCount), connection)
        var insert = try connection.statement(
            """
            INSERT INTO file_uploads (owner, device, bytes, touched, removed) VALUES (?1, ?2, ?3, unixepoch(), 0)
            """)
        try insert.bind(text: owner.text, at: 1)
        try insert.bind(text: device.knowledgeID.text, at: 2)
        try insert.bind(integer: Int64(byteCount), at: 3)
        try insert.run()
        let generation = try connection.integer("SELECT last_insert_rowid()")
        return OwnerFileUpload(owner: owner, generation: generation, byteCount: byteCount)
    }

    private func addUsage(_ bytes: Int64, _ connection: Connection) throws {
        var statement = try connection.statement("UPDATE file_usage SET bytes = bytes + ?1")
        try statement.bind(integer: bytes, at: 1)
        try statement.run()
    }

    func append(_ chunk: [UInt8], _ number: Int, to upload: OwnerFileUpload, _ connection: Connection) throws {
        let isThere = try returning(
            "UPDATE file_uploads SET touched = unixepoch() WHERE generation = ?1 AND removed = 0 RETURNING generation",
            connection
        ) { (statement: inout Statement) in try statement.bind(integer: upload.generation, at: 1) }
        guard !isThere.isEmpty else { throw Self.isGone }
        var insert = try connection.statement(
            "INSERT INTO file_chunks (generation, number, content) VALUES (?1, ?2, ?3)")
        try insert.bind(integer: upload.generation, at: 1)
        try insert.bind(integer: Int64(number), at: 2)
        try insert.bind(blob: chunk, at: 3)
        try insert.run()
    }

    /// - Returns: the generations that must be removed, too.
    func commit(
        _ upload: OwnerFileUpload, _ newest: TimeStamp, _ digest: [UInt8], _ connection: Connection
    ) throws -> (OwnerFileCommit, [Int64]) {
        let current = try anyFile(of: upload.owner, connection)
        if let current, current.epoch == epoch, current.file.newest > newest {
            try markRemoved(upload, connection)
            return (.older(than: current.file), [upload.generation])
        }
        let isThere = try returning(
            "DELETE FROM file_uploads WHERE generation = ?1 AND removed = 0 RETURNING generation", connection
        ) { (statement: inout Statement) in try statement.bind(integer: upload.generation, at: 1) }
        guard !isThere.isEmpty else { throw Self.isGone }
        if let current { try markRemoved(current.file, connection) }
        var statement = try connection.statement(
            """
            INSERT OR REPLACE INTO owner_files (owner, epoch, generation, bytes, newest, digest)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """)
        try statement.bind(text: upload.owner.text, at: 1)
        try statement.bind(text: epoch, at: 2)
        try statement.bind(integer: upload.generation, at: 3)
        try statement.bind(integer: Int64(upload.byteCount), at: 4)
        try statement.bind(integer: newest.rawValue, at: 5)
        try statement.bind(blob: digest, at: 6)
        try statement.run()
        let file = OwnerFile(
            owner: upload.owner, generation: upload.generation, byteCount: upload.byteCount, newest: newest,
            digest: digest)
        return (.stored(file), current.map { [$0.file.generation] } ?? [])
    }

    func chunk(_ number: Int, of file: OwnerFile, _ connection: Connection) throws -> [UInt8]? {
        // Of a file that is being removed, some chunks may be there still.
        guard try anyFile(of: file.owner, connection)?.file.generation == file.generation else { return nil }
        var statement = try connection.statement(
            "SELECT content FROM file_chunks WHERE generation = ?1 AND number = ?2")
        try statement.bind(integer: file.generation, at: 1)
        try statement.bind(integer: Int64(number), at: 2)
        return try statement.step() ? try statement.bytes(at: 0) : nil
    }

    // MARK: Removal

    func markRemoved(_ upload: OwnerFileUpload, _ connection: Connection) throws {
        var statement = try connection.statement("UPDATE file_uploads SET removed = 1 WHERE generation = ?1")
        try statement.bind(integer: upload.generation, at: 1)
        try statement.run()
    }

    /// - Returns: the generations.
    func markRemoved(uploadsOf device: Device, _ connection: Connection) throws -> [Int64] {
        try returning(
            "UPDATE file_uploads SET removed = 1 WHERE owner = ?1 AND device = ?2 AND removed = 0 RETURNING generation",
            connection
        ) { (statement: inout Statement) in
            try statement.bind(text: device.caller.text, at: 1)
            try statement.bind(text: device.knowledgeID.text, at: 2)
        }
    }

    /// Marks uploads without a chunk for so many seconds.
    ///
    /// - Returns: all marked generations.
    func markRemoved(idleFor seconds: Int, _ connection: Connection) throws -> [Int64] {
        try returning(
            "UPDATE file_uploads SET removed = 1 WHERE removed = 1 OR touched <= unixepoch() - ?1 RETURNING generation",
            connection
        ) { (statement: inout Statement) in try statement.bind(integer: Int64(seconds), at: 1) }
    }

    private func markRemoved(_ file: OwnerFile, _ connection: Connection) throws {
        var statement = try connection.statement(
            """
            INSERT INTO file_uploads (generation, owner, device, bytes, touched, removed)
            VALUES (?1, ?2, '', ?3, unixepoch(), 1)
            """)
        try statement.bind(integer: file.generation, at: 1)
        try statement.bind(text: file.owner.text, at: 2)
        try statement.bind(integer: Int64(file.byteCount), at: 3)
        try statement.run()
    }

    /// - Returns: whether there was a file of this history, and what must be removed.
    func remove(_ owner: SyncID, _ connection: Connection) throws -> (hadFile: Bool, generations: [Int64]) {
        let current = try anyFile(of: owner, connection)
        if let current {
            try markRemoved(current.file, connection)
            var statement = try connection.statement("DELETE FROM owner_files WHERE owner = ?1")
            try statement.bind(text: owner.text, at: 1)
            try statement.run()
        }
        let generations = try returning(
            "UPDATE file_uploads SET removed = 1 WHERE owner = ?1 RETURNING generation", connection
        ) { (statement: inout Statement) in try statement.bind(text: owner.text, at: 1) }
        return (current?.epoch == epoch, generations)
    }

    /// Removes some chunks of a marked generation, and its entry with the last one.
    ///
    /// - Returns: whether more are left.
    func removeChunks(of generation: Int64, _ connection: Connection) throws -> Bool {
        let removed = try returning(
            """
            DELETE FROM file_chunks WHERE generation = ?1 AND number IN (
                SELECT number FROM file_chunks WHERE generation = ?1 LIMIT 16) RETURNING number
            """, connection
        ) { (statement: inout Statement) in try statement.bind(integer: generation, at: 1) }
        if removed.count == Self.removedAtOnce { return true }
        let freed = try returning(
            "DELETE FROM file_uploads WHERE generation = ?1 AND removed = 1 RETURNING bytes", connection
        ) { (statement: inout Statement) in try statement.bind(integer: generation, at: 1) }
        for bytes in freed { try addUsage(-bytes, connection) }
        return false
    }

    private func returning(
        _ sql: StaticString, _ connection: Connection, _ bind: (inout Statement) throws -> Void
    ) throws -> [Int64] {
        var statement = try connection.statement(sql)
        try bind(&statement)
        var values: [Int64] = []
        while try statement.step() { values.append(try statement.integer(at: 0)) }
        return values
    }

    private static var isGone: OwnerFileError {
        OwnerFileError(.gone, "the upload was replaced by another one of the device, or took too long")
    }
}
