/// The embedded log and the embedded tables.
extension Metric {
    /// Transactions of the log.
    package static let logWriteDuration = Metric(
        "log_write_duration_seconds", .histogram(.seconds),
        "Time of one transaction of the log, its sync included; it carries all that waited.")
    /// The sync of a transaction.
    package static let logSyncDuration = Metric(
        "log_sync_duration_seconds", .histogram(.seconds), "The part of it that commits and syncs to the disk.")
    /// Records in a transaction.
    package static let logGroupRecords = Metric(
        "log_group_records", .histogram(.counts), "Records that one transaction of the log carried.")
    /// Bytes in a transaction.
    package static let logGroupBytes = Metric(
        "log_group_bytes", .histogram(.bytes), "Bytes of keys and values that one transaction of the log carried.")
    /// Transactions that failed.
    package static let logWriteFailures = Metric(
        "log_write_failures_total", .counter, "Transactions of the log that failed, for want of room for example.")
    /// What waits to be written.
    package static let logQueueBytes = Metric(
        "log_queue_bytes", .gauge, "Bytes of records that wait to be written or are being written.")

    static let log = [
        logWriteDuration, logSyncDuration, logGroupRecords, logGroupBytes, logWriteFailures, logQueueBytes,
    ]

    /// Transactions of the tables.
    package static let storeCommitDuration = Metric(
        "store_commit_duration_seconds", .histogram(.seconds),
        "Time of one transaction of the tables; it carries the steps of all partitions that waited.")
    /// Rows in a transaction.
    package static let storeCommitRows = Metric(
        "store_commit_rows", .histogram(.counts), "Rows that one transaction of the tables wrote.")
    /// Partitions in a transaction.
    package static let storeCommitSteps = Metric(
        "store_commit_steps", .histogram(.counts), "Partitions' steps that one transaction of the tables carried.")
    /// Transactions that failed.
    package static let storeCommitFailures = Metric(
        "store_commit_failures_total", .counter, "Steps that the tables did not take.")
    /// Look-ups.
    package static let storeReadDuration = Metric(
        "store_read_duration_seconds", .histogram(.seconds),
        "Time of one look-up of rows or devices' progress, its wait for a thread included.")

    static let store = [
        storeCommitDuration, storeCommitRows, storeCommitSteps, storeCommitFailures, storeReadDuration,
    ]
}
