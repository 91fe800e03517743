/// The stages that consume a topic.
extension Metric {
    package static let stageNextOffset = Metric(
        "stage_next_offset", .gauge, [.stage, .partition],
        "Offset of the first record that the stage has not finished, for each partition that the process works on.")
    package static let stageLagRecords = Metric(
        "stage_lag_records", .gauge, [.stage, .partition],
        "Records in the log that the stage has not finished, for each partition that the process works on.")
    package static let stageLagSeconds = Metric(
        "stage_lag_seconds", .gauge, [.stage, .partition],
        "Age of the oldest record that the stage has not finished, by the log's time; 0 if there is none.")
    package static let stageRetries = Metric(
        "stage_retries_total", .counter, [.stage], "Retries after a failure of a partition.")
    package static let uploadToPullable = Metric(
        "upload_to_pullable_seconds", .histogram(.seconds),
        "Time from the durable append of a batch until its result can be pulled.")

    static let stages = [stageNextOffset, stageLagRecords, stageLagSeconds, stageRetries, uploadToPullable]

    package static let ingestRecords = Metric(
        "ingest_records_total", .counter,
        "Records of uploads that were checked, including those repeated after a restart.")
    package static let ingestChanges = Metric(
        "ingest_changes_total", .counter, "Changes in the records of uploads that were checked.")
    package static let ingestRefusedChanges = Metric(
        "ingest_refused_changes_total", .counter, [.reason], "Changes that ingest refused, by code.")
    package static let ingestRefusedRecords = Metric(
        "ingest_refused_records_total", .counter, [.reason],
        "Records refused as a whole for violating the contract of uploads and sent to dead-letters, by code.")
    package static let ingestDroppedDeadLetters = Metric(
        "ingest_dropped_dead_letters_total", .counter,
        "Dead letters that were not appended, since their owner had caused ingest.dead-letter-bytes in the hour.")
    package static let ingestStepRecords = Metric(
        "ingest_step_records", .histogram(.counts), "Records that were checked and appended together.")
    package static let ingestStepDuration = Metric(
        "ingest_step_duration_seconds", .histogram(.seconds),
        "Time from reading records until the append of all their parts is durable.")

    package static let ingestPaused = Metric(
        "ingest_paused", .gauge, [.partition],
        "1 while the partition is paused at a record that it cannot process, else 0.")

    static let ingest = [
        ingestRecords, ingestChanges, ingestRefusedChanges, ingestRefusedRecords, ingestDroppedDeadLetters,
        ingestStepRecords, ingestStepDuration, ingestPaused,
    ]

    package static let orderingMessages = Metric(
        "ordering_messages_total", .counter, [.outcome],
        "Parts of batches by result: ordered, repeated, refused as a whole, or dropped as a duplicate.")
    package static let orderingChanges = Metric(
        "ordering_changes_total", .counter, [.outcome],
        "Changes by result: applied, deleted (the row stays deleted), conflict or refused.")
    package static let orderingRefusedChanges = Metric(
        "ordering_refused_changes_total", .counter, [.reason], "Changes that ordering refused, by code.")
    package static let orderingCopiedBytes = Metric(
        "ordering_copied_bytes_total", .counter,
        "Bytes of rows' values that were copied to decide changes: about those of the rows written, whatever the number of their changes."
    )
    package static let orderingStepMessages = Metric(
        "ordering_step_messages", .histogram(.counts), "Parts of batches that were decided together.")
    package static let orderingDecideDuration = Metric(
        "ordering_decide_duration_seconds", .histogram(.seconds),
        "Time to read the rows and device progress of a step and to decide it.")
    package static let orderingWriteDuration = Metric(
        "ordering_write_duration_seconds", .histogram(.seconds),
        "Time from decided results until they are published and in the tables.")
    package static let orderingUnwrittenBytes = Metric(
        "ordering_unwritten_bytes", .gauge, "Size of the results that wait for the log or the tables.")
    package static let orderingPaused = Metric(
        "ordering_paused", .gauge, [.partition],
        "1 while the partition is paused at a record that it cannot order, else 0.")

    static let ordering = [
        orderingMessages, orderingChanges, orderingRefusedChanges, orderingCopiedBytes, orderingStepMessages,
        orderingDecideDuration, orderingWriteDuration, orderingUnwrittenBytes, orderingPaused,
    ]

    package static let fanOutApplyDuration = Metric(
        "fanout_apply_duration_seconds", .histogram(.seconds),
        "Duration of a transaction of a stream.")
    package static let fanOutApplyRecords = Metric(
        "fanout_apply_records", .histogram(.counts), "Records of ordered applied by a transaction of a stream.")
    package static let fanOutRows = Metric("fanout_rows_total", .counter, "Rows written to streams.")
    package static let fanOutServing = Metric(
        "fanout_serving", .gauge, [.partition], "1 while the partition's stream serves pulls, else 0.")
    package static let fanOutPaused = Metric(
        "fanout_paused", .gauge, [.partition],
        "1 while the partition's stream is paused at a record that it cannot apply, or waits for a schema version, else 0."
    )
    package static let fanOutRebuilds = Metric(
        "fanout_rebuilds_total", .counter, "Streams that were rebuilt from the tables.")
    package static let fanOutRebuildRows = Metric(
        "fanout_rebuild_rows", .gauge, [.partition],
        "Rows and outcomes written so far by the rebuild of the partition's stream; 0 without a rebuild.")
    package static let fanOutRebuildExpectedRows = Metric(
        "fanout_rebuild_expected_rows", .gauge, [.partition],
        "Approximate total of rows and outcomes of the rebuild of the partition's stream; 0 without a rebuild.")
    package static let fanOutPulls = Metric(
        "fanout_pulls_total", .counter, [.outcome],
        "Checks of an owner's head without news, in memory (idle), and other pulls (read, failed).")
    package static let fanOutPullDuration = Metric(
        "fanout_pull_duration_seconds", .histogram(.seconds), "Duration of a pull that is not idle, including waits.")
    package static let fanOutPageRows = Metric(
        "fanout_page_rows", .histogram(.counts), "Rows sent by a pull; the sum is the total of rows sent.")
    package static let fanOutPageBytes = Metric(
        "fanout_page_bytes", .histogram(.bytes), "Size of the rows sent by a pull, before compression.")

    package static let fanOutPullRecords = Metric(
        "fanout_pull_records", .histogram(.counts),
        "Records of streams that a pull read: rows, sent or not, entries of the index by time, and neighbours of searches."
    )

    package static let fanOutComparedHeads = Metric(
        "fanout_compared_heads_total", .counter,
        "Creating devices whose heads pulls compared with vectors: all of an owner only where a vector names some and others may have news."
    )

    package static let fanOutLogTruncations = Metric(
        "fanout_wal_truncations_total", .counter,
        "Truncations of a stream's write-ahead log, for which its reads waited.")

    static let fanOut = [
        fanOutApplyDuration, fanOutApplyRecords, fanOutRows, fanOutServing, fanOutPaused, fanOutRebuilds,
        fanOutRebuildRows, fanOutRebuildExpectedRows, fanOutPulls, fanOutPullDuration, fanOutPageRows, fanOutPageBytes,
        fanOutPullRecords, fanOutComparedHeads, fanOutLogTruncations,
    ]
}

/// The values of the label `stage`.
package enum MetricStage: String, Sendable, Hashable, CaseIterable {
    /// Reads `uploads`.
    case ingest
    /// Reads `changes`.
    case ordering
    /// Reads `ordered`.
    case fanOut = "fanout"
}

extension MetricRegistry {
    /// The offset of the first record that the stage has not finished; unknown at first.
    package func position(of stage: MetricStage, in partition: Int) -> Gauge {
        gauge(.stageNextOffset, [.stage: stage.rawValue, .partition: "\(partition)"], startingWith: nil)
    }

    package func retries(of stage: MetricStage) -> Counter { counter(.stageRetries, [.stage: stage.rawValue]) }
}
