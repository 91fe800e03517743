import SQLite
import SyncModel

/// The stream file of a partition, open for writing.
///
/// It has one writer at a time: first the rebuild that creates it, then the partition's ``FileWriter``.
final class StreamFile {
    struct Identity: Sendable, Hashable {
        let path: String
        let epoch: String
        let partition: Int
    }

    let identity: Identity
    let connection: Connection
    /// The state after the last commit.
    var state = FileState()
    /// The checksum of the meta record, by which another writer is detected; `nil` while the file is being built.
    var metaChecksum: Int64?
    /// By schema ordinal.
    var renderers: [Int: RowJSON] = [:]
    /// The heads of the owners loaded so far, while the file is being built.
    var loaded: [SyncID: OwnerHeads] = [:]
    /// The opened files, the database and its WAL; `nil` while they are being built.
    private var opened: [FileOnDisk.Identity?]?
    /// A buffer for rendered rows, reused for its capacity.
    var json: [UInt8] = []

    /// Creates a file with empty tables.
    init(creating identity: Identity) throws {
        self.identity = identity
        connection = try Connection(
            path: identity.path, access: .readWriteCreate(Self.writing(FanOutConfiguration.checkpointBytes)),
            options: Self.options)
        do {
            try connection.transaction(.immediate) {
                for table in FileSchema.tables { try connection.execute(table.sql) }
                try connection.setUserVersion(FileSchema.format)
            }
        } catch {
            throw Self.close(connection, after: error)
        }
    }

    /// Opens a complete file and checks it.
    ///
    /// - Parameter checkpointBytes: the size of the WAL from which commits copy it into the database.
    /// - Throws: ``StreamFailure``; `CancellationError` when the task is cancelled during the check.
    init(
        opening identity: Identity, check: FanOutConfiguration.Check,
        checkpointBytes: Int = FanOutConfiguration.checkpointBytes
    ) throws {
        self.identity = identity
        guard FileOnDisk.exists(identity.path) else { throw StreamFailure.missing("there is no file \(identity.path)") }
        connection = try Self.openExisting(identity.path, checkpointBytes)
        do {
            try checkSchema()
            try readMeta()
            if check == .full { try checkContent() }
            opened = Self.identities(identity.path)
        } catch {
            throw Self.close(connection, after: error)
        }
    }

    /// Checks that the opened files are still those at their paths.
    ///
    /// A deleted or replaced file remains usable for processes that have it open, and everything written to it is lost
    /// when they close it.
    ///
    /// - Throws: ``StreamFailure/missing(_:)``.
    func requireInPlace() throws(StreamFailure) {
        guard let opened, opened != Self.identities(identity.path) else { return }
        throw .missing("\(identity.path), or its WAL, was deleted or replaced while it was open")
    }

    private static func identities(_ path: String) -> [FileOnDisk.Identity?] {
        [FileOnDisk.identity(of: path), FileOnDisk.identity(of: path + "-wal")]
    }

    func close() throws(SQLiteError) { try connection.close() }

    /// The size of the WAL; 0 when there is none.
    var logSize: Int { FileOnDisk.size(of: identity.path + "-wal") }

    /// Empties the WAL.
    ///
    /// - Returns: false when the file is read at the same time.
    func truncateLog() throws(SQLiteError) -> Bool { try connection.truncateWriteAheadLog() }

    /// Streams can be rebuilt, so commits need not wait for the disk.
    private static func writing(_ checkpointBytes: Int) -> WriteOptions {
        WriteOptions(journal: .wal, synchronous: .normal, walAutocheckpoint: max(1, checkpointBytes / 4096))
    }

    /// Per partition; the system's page cache is behind it.
    private static let options = ConnectionOptions(cacheSize: 4 << 20)

    private static func openExisting(_ path: String, _ checkpointBytes: Int) throws -> Connection {
        do throws(SQLiteError) {
            return try Connection(path: path, access: .readWriteCreate(writing(checkpointBytes)), options: options)
        } catch {
            throw StreamFailure(opening: path, error)
        }
    }

    /// Closes a connection after an error and returns the error to throw.
    private static func close(_ connection: Connection, after error: any Error) -> any Error {
        do throws(SQLiteError) {
            try connection.close()
        } catch let second {
            return StreamFailure.damaged("\(error); the file could not be closed: \(second)")
        }
        return StreamFailure(cause: error) ?? error
    }
}

/// The state of a stream file besides its records.
struct FileState: Sendable {
    var position = StreamPosition()
    /// The sum of all records' checksums, modulo 2^64.
    var digest: Int64 = 0
    var nextOwner: Int64 = 1
    /// The next number of a creating device of an owner.
    var nextDevice: Int64 = 1
    var nextUploader: Int64 = 1

    /// Adds the checksum of a new record.
    mutating func add(_ checksum: Int64) { digest &+= checksum }

    /// Subtracts the checksum of a removed record.
    mutating func remove(_ checksum: Int64) { digest &-= checksum }
}
