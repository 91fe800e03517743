import SQLite
import SyncModel

extension StreamFile {
    /// Checks that the file's tables are exactly those of this format.
    func checkSchema() throws {
        let format = try connection.userVersion()
        guard format == FileSchema.format else {
            throw StreamFailure.damaged("the file has format \(format), expected \(FileSchema.format)")
        }
        var expected = Dictionary(uniqueKeysWithValues: FileSchema.tables.map { ($0.name, Array($0.sql.utf8)) })
        let indexes = Dictionary(uniqueKeysWithValues: FileSchema.rowIndexes.map { ($0.name, Array($0.sql.utf8)) })
        var statement = try connection.statement("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        while try statement.step() {
            let name = try statement.text(at: 0)
            guard let sql = expected.removeValue(forKey: name) ?? indexes[name], try statement.bytes(at: 1) == sql
            else {
                throw StreamFailure.damaged("the definition of \(name) is not that of this format")
            }
        }
        guard expected.isEmpty else { throw StreamFailure.damaged("tables are missing") }
    }

    /// Reads the meta record and the next numbers to assign.
    func readMeta() throws {
        var statement = try connection.statement(
            """
            SELECT epoch, partition, next_offset, changes_offset, piece, is_complete, time_stamp, digest, checksum \
            FROM meta WHERE id = 1
            """)
        guard try statement.step() else { throw StreamFailure.missing("the file is incomplete") }
        var position = StreamPosition()
        position.nextOffset = try statement.integer(at: 2)
        position.changesOffset = try statement.integer(at: 3)
        position.piece = Int(try statement.integer(at: 4))
        position.isComplete = try statement.integer(at: 5) == 1
        state.digest = try statement.integer(at: 7)
        let checksum = try statement.integer(at: 8)
        guard let timeStamp = TimeStamp(rawValue: try statement.integer(at: 6)) else {
            throw StreamFailure.damaged("the meta record is damaged")
        }
        position.timeStamp = timeStamp
        let epoch = try statement.bytes(at: 0)
        let partition = try statement.integer(at: 1)
        guard self.checksum(of: position, digest: state.digest, epoch: epoch, partition: partition) == checksum else {
            throw StreamFailure.damaged("the meta record is damaged")
        }
        guard epoch == Array(identity.epoch.utf8), partition == Int64(identity.partition) else {
            throw StreamFailure.damaged("the file has a different epoch or partition")
        }
        position.uploads = try readUploads()
        state.position = position
        metaChecksum = checksum
        state.nextOwner = try next("SELECT coalesce(max(owner_no), 0) + 1 FROM owners")
        state.nextDevice = try next("SELECT coalesce(max(device_no), 0) + 1 FROM knowledge")
        state.nextUploader = try next("SELECT coalesce(max(dev_no), 0) + 1 FROM devices")
    }

    /// Checks, at the start of a transaction, that no other process has written the file.
    ///
    /// - Throws: ``StreamFailure/foreignWriter(_:)``.
    func requireOwnMeta() throws {
        guard let metaChecksum else { return }
        var statement = try connection.statement("SELECT checksum FROM meta WHERE id = 1")
        guard try statement.step() else { throw StreamFailure.damaged("the meta record is missing") }
        guard try statement.integer(at: 0) == metaChecksum else {
            throw StreamFailure.foreignWriter("another process writes \(identity.path)")
        }
    }

    /// Writes the meta record of a transaction.
    ///
    /// The first one completes the file.
    ///
    /// - Returns: its checksum, for ``metaChecksum`` after the commit.
    func writeMeta(_ state: FileState) throws -> Int64 {
        let position = state.position
        let epoch = Array(identity.epoch.utf8)
        let checksum = checksum(
            of: position, digest: state.digest, epoch: epoch, partition: Int64(identity.partition))
        if metaChecksum != nil {
            var statement = try connection.statement(
                """
                UPDATE meta SET next_offset = ?1, changes_offset = ?2, piece = ?3, is_complete = ?4, time_stamp = ?5, \
                digest = ?6, checksum = ?7 WHERE id = 1
                """)
            try bindNumbers(position, state.digest, checksum, to: &statement)
            try statement.run()
        } else {
            var statement = try connection.statement(
                """
                INSERT INTO meta(id, next_offset, changes_offset, piece, is_complete, time_stamp, digest, checksum, \
                epoch, partition) VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                """)
            try bindNumbers(position, state.digest, checksum, to: &statement)
            try statement.bind(blob: epoch, at: 8)
            try statement.bind(integer: Int64(identity.partition), at: 9)
            try statement.run()
        }
        return checksum
    }

    /// Writes the progress of a partition of `uploads`.
    func writeUpload(_ partition: Int, from old: UploadProgress?, to new: UploadProgress, _ state: inout FileState)
        throws
    {
        if let old { state.remove(Self.checksum(ofUpload: Int64(partition), old.offset, Int64(old.part))) }
        let checksum = Self.checksum(ofUpload: Int64(partition), new.offset, Int64(new.part))
        state.add(checksum)
        var statement = try connection.statement(
            "INSERT OR REPLACE INTO uploads(partition, upload_offset, part, checksum) VALUES(?1, ?2, ?3, ?4)")
        try statement.bind(integer: Int64(partition), at: 1)
        try statement.bind(integer: new.offset, at: 2)
        try statement.bind(integer: Int64(new.part), at: 3)
        try statement.bind(integer: checksum, at: 4)
        try statement.run()
    }

    static func checksum(ofUpload partition: Int64, _ offset: Int64, _ part: Int64) -> Int64 {
        Checksum(.upload, partition, offset, part).value
    }

    private func readUploads() throws -> [Int: UploadProgress] {
        var uploads: [Int: UploadProgress] = [:]
        var statement = try connection.statement("SELECT partition, upload_offset, part, checksum FROM uploads")
        while try statement.step() {
            let partition = try statement.integer(at: 0)
            let progress = UploadProgress(offset: try statement.integer(at: 1), part: Int(try statement.integer(at: 2)))
            guard
                try statement.integer(at: 3)
                    == Self.checksum(ofUpload: partition, progress.offset, Int64(progress.part))
            else { throw StreamFailure.damaged("the record of a partition of uploads is damaged") }
            uploads[Int(partition)] = progress
        }
        return uploads
    }

    private func next(_ sql: StaticString) throws -> Int64 {
        var statement = try connection.statement(sql)
        guard try statement.step() else { throw StreamFailure.damaged("an aggregate returned no row") }
        return try statement.integer(at: 0)
    }

    private func bindNumbers(
        _ position: StreamPosition, _ digest: Int64, _ checksum: Int64, to statement: inout Statement
    ) throws(SQLiteError) {
        try statement.bind(integer: position.nextOffset, at: 1)
        try statement.bind(integer: position.changesOffset, at: 2)
        try statement.bind(integer: Int64(position.piece), at: 3)
        try statement.bind(integer: position.isComplete ? 1 : 0, at: 4)
        try statement.bind(integer: position.timeStamp.rawValue, at: 5)
        try statement.bind(integer: digest, at: 6)
        try statement.bind(integer: checksum, at: 7)
    }

    private func checksum(of position: StreamPosition, digest: Int64, epoch: [UInt8], partition: Int64) -> Int64 {
        var checksum = Checksum(
            .meta, partition, position.nextOffset, position.changesOffset, Int64(position.piece),
            position.isComplete ? 1 : 0, position.timeStamp.rawValue, digest)
        checksum.add(bytes: epoch.span.bytes)
        return checksum.value
    }
}
