import ChangeLog
import LocalLog
import SQLite

/// The log's file: a table for each partition, the groups and their offsets, and how many partitions there are.
struct LogFile {
    /// The writing connection, for the writer's thread.
    let connection: Connection
    let partitions: LogPartitions
    /// Of each partition, by its index.
    let ranges: [LogRange]

    /// The `application_id` ("WLOG").
    private static let application: Int64 = 0x574C_4F47
    /// The `user_version` that this code writes.
    private static let format: Int32 = 1
    /// SQLite's own maximum of `max_page_count`.
    private static let maximumPages = 4_294_967_294

    /// The table of a partition; its column `place` is the offset.
    static func table(of partition: TopicPartition) -> String {
        let topic = partition.topic == .deadLetters ? "dead_letters" : partition.topic.rawValue
        return "\(topic)_\(partition.partition)"
    }

    /// Opens the file, and creates it if it is missing.
    init(_ configuration: SQLiteChangeLogConfiguration) throws {
        let path = configuration.path
        // FULL syncs the write-ahead log at each commit, before the append is acknowledged (I1).
        // With pages of 16 KiB, and 16 MB between checkpoints, records of some kilobytes are written fastest.
        let options = WriteOptions(journal: .wal, synchronous: .full, pageSize: 16384, walAutocheckpoint: 1000)
        // Long, since only an operator's tool locks the file, and a failed append ends its producer.
        let connectionOptions = ConnectionOptions(busyTimeoutMilliseconds: 60_000)
        let connection = try Connection(path: path, access: .readWriteCreate(options), options: connectionOptions)
        do {
            let count = try connection.transaction(.immediate) {
                try Self.prepare(connection, path: path, partitions: configuration.partitions)
            }
            let pages = configuration.maximumFileBytes.map { $0 / options.pageSize } ?? Self.maximumPages
            // 0 would only read the limit.
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
        switch (try connection.integer("PRAGMA application_id"), try connection.userVersion()) {
        case (0, 0):
            guard try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 else { throw notALog(path) }
            try create(connection, partitions: partitions)
            return partitions
        case (application, format):
            let recorded = Int(try connection.integer("SELECT partitions FROM weir_log"))
            // A first start that failed must not have decided on the number.
            guard try recorded != partitions && isEmpty(connection, partitions: recorded) else { return recorded }
            try createTables(connection, partitions: partitions, replacing: recorded)
            return partitions
        case (application, let other):
            throw ChangeLogError(
                .other, message: "\(path) has format \(other), this version of Weir knows \(format); upgrade Weir")
        default:
            throw notALog(path)
        }
    }

    private static func create(_ connection: Connection, partitions: Int) throws {
        try connection.execute(
            """
            PRAGMA application_id = \(application);
            PRAGMA user_version = \(format);
            CREATE TABLE weir_log (partitions INTEGER NOT NULL) STRICT;
            INSERT INTO weir_log VALUES (0);
            CREATE TABLE weir_groups (
                name TEXT NOT NULL, topic TEXT NOT NULL, PRIMARY KEY (name, topic)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE weir_offsets (
                name TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
                PRIMARY KEY (name, topic, partition)
            ) STRICT, WITHOUT ROWID;
            """)
        try createTables(connection, partitions: partitions, replacing: 0)
    }

    private static func createTables(_ connection: Connection, partitions: Int, replacing former: Int) throws {
        guard SQLiteChangeLogConfiguration.partitionRange ~= partitions else {
            let range = SQLiteChangeLogConfiguration.partitionRange
            throw ChangeLogError(
                .other, message: "a log has \(range.lowerBound) to \(range.upperBound) partitions, not \(partitions)")
        }
        for partition in LogPartitions(count: former).all {
            try connection.execute("DROP TABLE IF EXISTS \(table(of: partition))")
        }
        try connection.execute("UPDATE weir_log SET partitions = \(partitions)")
        for partition in LogPartitions(count: partitions).all {
            try connection.execute(
                """
                CREATE TABLE \(table(of: partition)) (
                    place INTEGER PRIMARY KEY, time INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL
                ) STRICT
                """)
        }
    }

    private static func isEmpty(_ connection: Connection, partitions: Int) throws -> Bool {
        try LogPartitions(count: partitions).all.allSatisfy { try range(of: $0, connection).end == 0 }
    }

    private static func notALog(_ path: String) -> ChangeLogError {
        ChangeLogError(.other, message: "\(path) is a database of another application; set another data folder")
    }

    /// Retention keeps the newest record of a partition, so that its end is known after a restart.
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
