/// What a connection may do with its file.
package enum Access: Sendable {
    /// Reads an existing database; every write is refused.
    case readOnly
    /// Reads and writes, making the file where there is none.
    case readWriteCreate(WriteOptions = WriteOptions())
}

/// How a writing connection keeps its data; the defaults suit data that can be made again from elsewhere.
package struct WriteOptions: Sendable {
    /// How a transaction becomes all or nothing.
    package enum Journal: String, Sendable {
        /// A write-ahead log: readers and the writer do not wait for each other.
        case wal
        /// A rollback journal, deleted at every commit.
        case delete
    }

    /// When a commit waits for the disk.
    package enum Synchronous: String, Sendable {
        /// Never: a power failure may damage the database.
        case off
        /// At checkpoints: a power failure may take the newest commits back, but damages nothing.
        case normal
        /// At every commit: what was committed stays. On macOS this includes the drive's own cache.
        case full
    }

    /// How a transaction becomes all or nothing.
    package var journal: Journal
    /// When a commit waits for the disk.
    package var synchronous: Synchronous
    /// The size of a page in bytes, a power of two from 512 to 65536; it counts when the file is made.
    package var pageSize: Int
    /// The length of the write-ahead log in pages from which a commit starts a checkpoint; 0: only `checkpoint` does.
    package var walAutocheckpoint: Int

    /// Sets what differs from the defaults.
    package init(
        journal: Journal = .wal, synchronous: Synchronous = .normal, pageSize: Int = 4096, walAutocheckpoint: Int = 1000
    ) {
        precondition(
            (512...65536).contains(pageSize) && pageSize & (pageSize - 1) == 0,
            "a page has a power of two from 512 to 65536 bytes")
        precondition(
            (0...Int(Int32.max)).contains(walAutocheckpoint), "a number of pages is at least 0 and fits in 32 bits")
        self.journal = journal
        self.synchronous = synchronous
        self.pageSize = pageSize
        self.walAutocheckpoint = walAutocheckpoint
    }
}

/// What every connection can be given.
package struct ConnectionOptions: Sendable {
    /// The most memory for pages in bytes, rounded down to KiB.
    package var cacheSize: Int
    /// How much of the file is read through mapped memory, in bytes, up to the limit SQLite was built with; 0: none.
    package var mmapSize: Int
    /// How long a statement waits for a lock that another connection holds before it fails as busy, in milliseconds.
    package var busyTimeoutMilliseconds: Int

    /// Sets what differs from the defaults: 8 MiB of cache, no mapped memory, 5 seconds.
    package init(cacheSize: Int = 8 << 20, mmapSize: Int = 0, busyTimeoutMilliseconds: Int = 5000) {
        precondition((1024...(1 << 40)).contains(cacheSize), "a cache has 1 KiB to 1 TiB")
        precondition(mmapSize >= 0, "a size in bytes is at least 0")
        precondition(
            (0...Int(Int32.max)).contains(busyTimeoutMilliseconds), "a time-out is at least 0 and fits in 32 bits")
        self.cacheSize = cacheSize
        self.mmapSize = mmapSize
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
    }
}
