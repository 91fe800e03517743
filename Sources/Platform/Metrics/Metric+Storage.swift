/// The embedded log and the embedded tables.
extension Metric {
    package static let logWriteDuration = Metric(
        "log_write_duration_seconds", .histogram(.seconds),
        "Duration of a transaction of the log, including its sync; it writes all waiting records.")
    package static let logSyncDuration = Metric(
        "log_sync_duration_seconds", .histogram(.seconds),
        "Duration of the commit and sync of a transaction of the log.")
    package static let logGroupRecords = Metric(
        "log_group_records", .histogram(.counts), "Records in a transaction of the log.")
    package static let logGroupBytes = Metric(
        "log_group_bytes", .histogram(.bytes), "Bytes of keys and values in a transaction of the log.")
    package static let logWriteFailures = Metric(
        "log_write_failures_total", .counter,
        "Transactions of the log that failed, for example because the disk is full.")
    package static let logQueueBytes = Metric(
        "log_queue_bytes", .gauge, "Bytes of records that wait to be written or are being written.")

    static let log = [
        logWriteDuration, logSyncDuration, logGroupRecords, logGroupBytes, logWriteFailures, logQueueBytes,
    ]

    package static let storeCommitDuration = Metric(
        "store_commit_duration_seconds", .histogram(.seconds),
        "Duration of a transaction of the tables; it writes the steps of all waiting partitions.")
    package static let storeCommitRows = Metric(
        "store_commit_rows", .histogram(.counts), "Rows written by a transaction of the tables.")
    package static let storeCommitSteps = Metric(
        "store_commit_steps", .histogram(.counts), "Steps of partitions written by a transaction of the tables.")
    package static let storeCommitFailures = Metric(
        "store_commit_failures_total", .counter, "Steps that could not be written to the tables.")
    package static let storeReadDuration = Metric(
        "store_read_duration_seconds", .histogram(.seconds),
        "Duration of a read of rows or device progress, including the wait for a thread.")

    static let store = [
        storeCommitDuration, storeCommitRows, storeCommitSteps, storeCommitFailures, storeReadDuration,
    ]
}
