package enum Access: Sendable {
    /// Opens an existing database; writes fail.
    case readOnly
    /// Creates the file if it is missing.
    case readWriteCreate(WriteOptions = WriteOptions())
}

/// The defaults suit data that can be rebuilt from another source.
package struct WriteOptions: Sendable {
    package enum Journal: String, Sendable {
        /// A write-ahead log: readers and the writer do not block each other.
        case wal
        /// A rollback journal, deleted at every commit.
        case delete
    }

    /// When a commit waits for the disk.
    package enum Synchronous: String, Sendable {
        /// Never: a power failure may damage the database.
        case off
        /// At checkpoints: a power failure may lose the newest commits, but damages nothing.
        case normal
        /// At every commit, which a power failure cannot lose.
        case full
    }

    package var journal: Journal
    package var synchronous: Synchronous
    /// In bytes, a power of two from 512 to 65536; applies when the file is created.
    package var pageSize: Int
    /// The length of the write-ahead log in pages from which a commit starts a checkpoint; 0: never.
    package var walAutocheckpoint: Int

    package init(
        journal: Journal = .wal, synchronous: Synchronous = .normal, pageSize: Int = 4096, walAutocheckpoint: Int = 1000
    ) {
        precondition(
            (512...65536).contains(pageSize) && pageSize & (pageSize - 1) == 0,
            "a page size is a power of two from 512 to 65536")
        precondition(
            (0...Int(Int32.max)).contains(walAutocheckpoint), "a page count is at least 0 and fits in 32 bits")
        self.journal = journal
        self.synchronous = synchronous
        self.pageSize = pageSize
        self.walAutocheckpoint = walAutocheckpoint
    }
}

package struct ConnectionOptions: Sendable {
    /// The page cache in bytes, rounded down to KiB.
    package var cacheSize: Int
    /// How long a statement waits for another connection's lock before it fails as busy.
    package var busyTimeoutMilliseconds: Int

    package init(cacheSize: Int = 8 << 20, busyTimeoutMilliseconds: Int = 5000) {
        precondition((1024...(1 << 40)).contains(cacheSize), "a cache has 1 KiB to 1 TiB")
        precondition(
            (0...Int(Int32.max)).contains(busyTimeoutMilliseconds), "a timeout is at least 0 and fits in 32 bits")
        self.cacheSize = cacheSize
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
    }
}
