import SQLite
import SyncModel

/// The stream file of a partition, open for writing.
///
/// One at a time writes: the partition's writer, or before it the rebuild that makes the file.
final class StreamFile {
    /// Whose file it is.
    struct Identity: Sendable, Hashable {
        /// Where it lies.
        let path: String
        /// The history.
        let epoch: String
        /// The partition.
        let partition: Int
    }

    /// Whose file it is.
    let identity: Identity
    /// The connection, which this file closes.
    let connection: Connection
    /// What was committed last.
    var state = FileState()
    /// The checksum of the meta record, by which another writer is noticed; `nil` while the file is being made.
    var metaChecksum: Int64?
    /// How rows of the schema versions met so far are rendered, by ordinal.
    var renderers: [Int: RowJSON] = [:]
    /// The heads of the owners loaded so far, while the file is being made.
    var loaded: [SyncID: OwnerHeads] = [:]
    /// The files that were opened, the database and its log of pages; `nil` while they are being made.
    private var opened: [FileOnDisk.Identity?]?
    /// Where rows are rendered, kept for its memory.
    var json: [UInt8] = []

    /// Begins a new file where there is none, with tables alone.
    init(creating identity: Identity) throws {
        self.identity = identity
        connection = try Connection(path: identity.path, access: .readWriteCreate(Self.writing), options: Self.options)
        do {
            try connection.transaction(.immediate) {
                for table in FileSchema.tables { try connection.execute(table.sql) }
                try connection.setUserVersion(FileSchema.format)
            }
        } catch {
            throw Self.close(connection, after: error)
        }
    }

    /// Opens a file that was finished, and checks it.
    ///
    /// - Throws: ``StreamFailure``; `CancellationError` when the task is cancelled while it checks.
    init(opening identity: Identity, check: FanOutConfiguration.Check) throws {
        self.identity = identity
        guard FileOnDisk.exists(identity.path) else { throw StreamFailure.missing("there is no file \(identity.path)") }
        connection = try Self.openExisting(identity.path)
        do {
            try checkSchema()
            try readMeta()
            if check == .full { try checkContent() }
            opened = Self.identities(identity.path)
        } catch {
            throw Self.close(connection, after: error)
        }
    }

    /// Makes sure that the files that were opened are those that the next one to open them will find.
    ///
    /// Files that somebody deleted, or put others in place of, stay whole for whoever has them open, and what is written to
    /// them is gone when the process ends.
    ///
    /// - Throws: ``StreamFailure/missing(_:)``.
    func requireInPlace() throws(StreamFailure) {
        guard let opened, opened != Self.identities(identity.path) else { return }
        throw .missing("\(identity.path), or its log, was deleted or replaced while it was open")
    }

    private static func identities(_ path: String) -> [FileOnDisk.Identity?] {
        [FileOnDisk.identity(of: path), FileOnDisk.identity(of: path + "-wal")]
    }

    /// Ends the file; what was committed stays.
    func close() throws(SQLiteError) { try connection.close() }

    /// Streams can be made again: commits need not wait for the disk.
    ///
    /// The log of pages is moved into the file every 64 MiB: pages that change often are then written once.
    private static let writing = WriteOptions(journal: .wal, synchronous: .normal, walAutocheckpoint: 16_000)
    /// Each partition has such a file; behind this cache stands the system's.
    private static let options = ConnectionOptions(cacheSize: 4 << 20)

    private static func openExisting(_ path: String) throws -> Connection {
        do throws(SQLiteError) {
            return try Connection(path: path, access: .readWriteCreate(writing), options: options)
        } catch {
            throw StreamFailure(opening: path, error)
        }
    }

    /// Closes a connection on the way to throwing an error; that it could not be closed is of less interest.
    private static func close(_ connection: Connection, after error: any Error) -> any Error {
        do throws(SQLiteError) {
            try connection.close()
        } catch let second {
            return StreamFailure.damaged("\(error); the file could not be closed: \(second)")
        }
        return StreamFailure(cause: error) ?? error
    }
}

/// What a stream file's transactions change, besides its records.
struct FileState: Sendable {
    /// How far the stream has followed `ordered`.
    var position = StreamPosition()
    /// The sum of all records' checksums, modulo 2^64.
    var digest: Int64 = 0
    /// The next owner's number.
    var nextOwner: Int64 = 1
    /// The next number of an owner's device.
    var nextDevice: Int64 = 1
    /// The next number of an uploading device.
    var nextUploader: Int64 = 1

    /// Counts a record that was added.
    mutating func add(_ checksum: Int64) { digest &+= checksum }

    /// Counts a record that was taken away.
    mutating func remove(_ checksum: Int64) { digest &-= checksum }
}
