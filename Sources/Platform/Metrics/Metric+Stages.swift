/// The stages that consume a topic.
extension Metric {
    /// Where a stage stands.
    package static let stageNextOffset = Metric(
        "stage_next_offset", .gauge, [.stage, .partition],
        "The offset of the first record that the stage has not finished with.")
    /// How far a stage is behind, in records.
    package static let stageLagRecords = Metric(
        "stage_lag_records", .gauge, [.stage, .partition],
        "Records in the log that the stage has not finished with.")
    /// How far a stage is behind, in time.
    package static let stageLagSeconds = Metric(
        "stage_lag_seconds", .gauge, [.stage, .partition],
        "Age of the oldest record that the stage has not finished with, by the log's own time; 0 when there is none.")
    /// Failures that are tried again.
    package static let stageRetries = Metric(
        "stage_retries_total", .counter, [.stage], "Times that a partition failed and was tried again.")
    /// From upload to pull.
    package static let uploadToPullable = Metric(
        "upload_to_pullable_seconds", .histogram(.seconds),
        "Time from the moment at which the log took a batch until a pull sees its result.")

    static let stages = [stageNextOffset, stageLagRecords, stageLagSeconds, stageRetries, uploadToPullable]

    /// Records checked.
    package static let ingestRecords = Metric(
        "ingest_records_total", .counter, "Records of uploads that were checked; after a restart some come again.")
    /// Changes checked.
    package static let ingestChanges = Metric("ingest_changes_total", .counter, "Changes in those records.")
    /// Changes refused.
    package static let ingestRefusedChanges = Metric(
        "ingest_refused_changes_total", .counter, [.reason], "Changes that were refused, by code.")
    /// Records refused.
    package static let ingestRefusedRecords = Metric(
        "ingest_refused_records_total", .counter, [.reason],
        "Records that break the contract of uploads and went to dead-letters as a whole, by code.")
    /// Records in a step.
    package static let ingestStepRecords = Metric(
        "ingest_step_records", .histogram(.counts), "Records that were checked and appended together.")
    /// Time of a step.
    package static let ingestStepDuration = Metric(
        "ingest_step_duration_seconds", .histogram(.seconds),
        "Time from reading records until the log has all their parts durably.")

    /// Paused partitions.
    package static let ingestPaused = Metric(
        "ingest_paused", .gauge, [.partition],
        "1 while the partition of uploads stands still at a record that needs something newer, else 0.")

    static let ingest = [
        ingestRecords, ingestChanges, ingestRefusedChanges, ingestRefusedRecords, ingestStepRecords, ingestStepDuration,
        ingestPaused,
    ]

    /// Messages ordered.
    package static let orderingMessages = Metric(
        "ordering_messages_total", .counter, [.outcome],
        "Messages of changes, by what became of them: ordered, repeated, refused as a whole, or dropped as seen before."
    )
    /// Changes ordered.
    package static let orderingChanges = Metric(
        "ordering_changes_total", .counter, [.outcome],
        "Changes decided, by what became of them: applied, deleted (the row stays deleted), conflict or refused.")
    /// Changes refused.
    package static let orderingRefusedChanges = Metric(
        "ordering_refused_changes_total", .counter, [.reason], "Changes that ordering refused, by code.")
    /// Messages in a step.
    package static let orderingStepMessages = Metric(
        "ordering_step_messages", .histogram(.counts), "Messages that were decided together.")
    /// Time to decide a step.
    package static let orderingDecideDuration = Metric(
        "ordering_decide_duration_seconds", .histogram(.seconds),
        "Time to look up what the messages of a step touch and to decide them.")
    /// Time to write a step.
    package static let orderingWriteDuration = Metric(
        "ordering_write_duration_seconds", .histogram(.seconds),
        "Time from decided results until they are published and in the tables.")
    /// Results not written yet.
    package static let orderingUnwrittenBytes = Metric(
        "ordering_unwritten_bytes", .gauge, "Size of the results that wait for the log or the tables.")
    /// Paused partitions.
    package static let orderingPaused = Metric(
        "ordering_paused", .gauge, [.partition],
        "1 while the partition stands still at a message that it cannot order, else 0.")

    static let ordering = [
        orderingMessages, orderingChanges, orderingRefusedChanges, orderingStepMessages, orderingDecideDuration,
        orderingWriteDuration, orderingUnwrittenBytes, orderingPaused,
    ]

    /// Time to apply results.
    package static let fanOutApplyDuration = Metric(
        "fanout_apply_duration_seconds", .histogram(.seconds),
        "Time of one transaction of a stream.")
    /// Results in a transaction.
    package static let fanOutApplyRecords = Metric(
        "fanout_apply_records", .histogram(.counts), "Records of ordered that one transaction of a stream took.")
    /// Rows applied.
    package static let fanOutRows = Metric("fanout_rows_total", .counter, "Rows that were written to streams.")
    /// Partitions that serve.
    package static let fanOutServing = Metric(
        "fanout_serving", .gauge, [.partition], "1 while the partition's stream answers pulls, else 0.")
    /// Paused partitions.
    package static let fanOutPaused = Metric(
        "fanout_paused", .gauge, [.partition],
        "1 while the partition's stream waits for a schema version that is not known here, else 0.")
    /// Rebuilds.
    package static let fanOutRebuilds = Metric(
        "fanout_rebuilds_total", .counter, "Streams that were made anew from the tables.")
    /// How far rebuilds have come.
    package static let fanOutRebuildRows = Metric(
        "fanout_rebuild_rows", .gauge, [.partition],
        "Rows and outcomes that the rebuild of the partition's stream has written so far; 0 while there is none.")
    /// How far rebuilds have to go.
    package static let fanOutRebuildExpectedRows = Metric(
        "fanout_rebuild_expected_rows", .gauge, [.partition],
        "Rows and outcomes that it will have written in the end, about; 0 while there is none.")
    /// Pulls.
    package static let fanOutPulls = Metric(
        "fanout_pulls_total", .counter, [.outcome],
        "Looks at an owner's stream that found nothing new, in memory (idle), and pulls that went further (read, failed)."
    )
    /// Time of pulls.
    package static let fanOutPullDuration = Metric(
        "fanout_pull_duration_seconds", .histogram(.seconds), "Time of one pull that went further, waits included.")
    /// Rows of a page.
    package static let fanOutPageRows = Metric(
        "fanout_page_rows", .histogram(.counts), "Rows that a pull sent; the sum is all rows sent.")
    /// Size of a page.
    package static let fanOutPageBytes = Metric(
        "fanout_page_bytes", .histogram(.bytes), "Size of the rows that a pull sent, before compression.")

    static let fanOut = [
        fanOutApplyDuration, fanOutApplyRecords, fanOutRows, fanOutServing, fanOutPaused, fanOutRebuilds,
        fanOutRebuildRows, fanOutRebuildExpectedRows, fanOutPulls, fanOutPullDuration, fanOutPageRows, fanOutPageBytes,
    ]
}
