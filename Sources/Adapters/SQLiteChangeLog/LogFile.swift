import ChangeLog
import LocalLog
import SQLite

/// The log's file: a table for each partition, the groups and their offsets, and how many partitions there are.
struct LogFile {
    /// The connection that writes; it stays on the writer's thread.
    let connection: Connection
    /// The partitions.
    let partitions: LogPartitions
    /// What each of them holds, at its place.
    let ranges: [LogRange]

    /// Marks the file as Weir's log ("WLOG").
    private static let application: Int64 = 0x574C_4F47
    /// The layout that this code writes.
    private static let format: Int32 = 1
    /// SQLite's own maximum of `max_page_count`.
    private static let maximumPages = 4_294_967_294

    /// The table of a partition; `place` is the offset.
    static func table(of partition: TopicPartition) -> String {
        let topic = partition.topic == .deadLetters ? "dead_letters" : partition.topic.rawValue
        return "\(topic)_\(partition.partition)"
    }

    /// Opens the file, making it where there is none.
    init(_ configuration: SQLiteChangeLogConfiguration) throws {
        let path = configuration.path
        // Every acknowledgement follows its fsync (I1): FULL syncs the write-ahead log at each commit.
        // Pages of 16 KiB, and 16 MB between checkpoints: records of some kilobytes are the rule, and fewer pages and
        // checkpoints take more of them a second.
        let options = WriteOptions(journal: .wal, synchronous: .full, pageSize: 16384, walAutocheckpoint: 1000)
        // Nobody but somebody who looks at the file makes it wait, and an append that fails ends its producer.
        let patience = ConnectionOptions(busyTimeoutMilliseconds: 60_000)
        let connection = try Connection(path: path, access: .readWriteCreate(options), options: patience)
        do {
            let count = try connection.transaction(.immediate) {
                try Self.prepare(connection, path: path, partitions: configuration.partitions)
            }
            let pages = configuration.maximumFileBytes.map { $0 / options.pageSize } ?? Self.maximumPages
            // Zero would be taken for a question.
            try connection.execute("PRAGMA max_page_count = \(max(pages, 1))")
            partitions = LogPartitions(count: count)
            ranges = try partitions.all.map { try Self.range(of: $0, connection) }
        } catch {
            try connection.close()
            throw error
        }
        self.connection = connection
    }

    private static func prepare(_ connection: Connection, path: String, partitions: Int) throws -> Int {
        switch (try integer("PRAGMA application_id", connection), try connection.userVersion()) {
        case (0, 0):
            guard try integer("SELECT count(*) FROM sqlite_schema", connection) == 0 else { throw notALog(path) }
            try create(connection, partitions: partitions)
            return partitions
        case (application, format):
            return Int(try integer("SELECT partitions FROM weir_log", connection))
        case (application, let other):
            throw ChangeLogError(
                .other, message: "\(path) has format \(other), this version of Weir knows \(format): upgrade Weir")
        default:
            throw notALog(path)
        }
    }

    private static func create(_ connection: Connection, partitions: Int) throws {
        guard SQLiteChangeLogConfiguration.partitionRange ~= partitions else {
            let range = SQLiteChangeLogConfiguration.partitionRange
            throw ChangeLogError(
                .other, message: "a log has \(range.lowerBound) to \(range.upperBound) partitions, not \(partitions)")
        }
        try connection.execute(
            """
            PRAGMA application_id = \(application);
            PRAGMA user_version = \(format);
            CREATE TABLE weir_log (partitions INTEGER NOT NULL) STRICT;
            CREATE TABLE weir_groups (
                name TEXT NOT NULL, topic TEXT NOT NULL, PRIMARY KEY (name, topic)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE weir_offsets (
                name TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
                PRIMARY KEY (name, topic, partition)
            ) STRICT, WITHOUT ROWID;
            INSERT INTO weir_log VALUES (\(partitions));
            """)
        for partition in LogPartitions(count: partitions).all {
            try connection.execute(
                """
                CREATE TABLE \(table(of: partition)) (
                    place INTEGER PRIMARY KEY, time INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL
                ) STRICT
                """)
        }
    }

    private static func notALog(_ path: String) -> ChangeLogError {
        ChangeLogError(.other, message: "\(path) is a database of something else: name another folder for the data")
    }

    /// Retention leaves the newest record of a partition, so the range goes on where it was.
    private static func range(of partition: TopicPartition, _ connection: Connection) throws -> LogRange {
        let table = table(of: partition)
        return LogRange(
            start: try integer("SELECT coalesce(min(place), 0) FROM \(table)", connection),
            end: try integer("SELECT coalesce(max(place) + 1, 0) FROM \(table)", connection))
    }

    private static func integer(_ sql: String, _ connection: Connection) throws -> Int64 {
        var statement = try connection.prepare(sql)
        return try statement.step() ? try statement.integer(at: 0) : 0
    }
}
