extension Catalog {
    private static let run = "Pipeline/Ingest/PartitionRun.swift"
    private static let splitter = "Pipeline/Ingest/BatchSplitter.swift"
    private static let content = "Pipeline/Ingest/BatchContent.swift"
    private static let owners = "Pipeline/Ingest/OwnerParts.swift"

    static let ingest: [Mutant] = [
        .statement(
            "an offset is committed before changes has the parts", in: run, "_ = try await step.receipt.offsets()"),
        .expression(
            "an offset is committed one too far", in: run, "records[step.count - 1].offset + 1",
            "records[step.count - 1].offset + 2"),
        .expression(
            "without a committed offset the newest records are read", in: "Pipeline/Ingest/PartitionRun+Start.swift",
            "range.start", "range.end", within: "return range.start"),
        .expression(
            "a part has not the limit of its batch", in: splitter, "batch.limits.maxBatchRowBytes",
            "OutcomeLimits().maxBatchRowBytes"),
        .expression(
            "a part has not the quota of its batch", in: splitter, "batch.limits.maxOwnerRows",
            "OutcomeLimits().maxOwnerRows"),
        .expression("parts of two owners have the same number", in: splitter, "others.count + 1", "1"),
        .expression(
            "the part of another owner has the caller as owner", in: splitter, "owner.id", "parts.owners[0].id",
            within: "owner: owner.id, device"),
        .expression(
            "a change for an owner that may only be read is admitted", in: owners, "$0.access == .write", "true"),
        .statement(
            "a part of an atomic batch does not know of a refusal", in: splitter, "parts.recordRefusal(at: owner)"),
        .statement(
            "two batches that differ in a value have the same hash", in: content,
            "add(values.bytes.span.extracting(values.ranges[position]))"),
        .expression(
            "two batches that differ in atomic have the same hash", in: content, "isAtomic ? 1 : 0", "0"),
        .expression(
            "two batches that differ in base have the same hash", in: content, "UInt64(change.base.rawValue)", "0"),
        .expression(
            "the content of a change depends on those before it", in: content,
            "start", "0", within: "extracting(droppingFirst: start)"),
        .statement(
            "two changes that differ in their ids alone have the same content", in: content,
            "add(changeID.text.utf8.span)"),
        .expression(
            "a value that was altered counts as sent", in: "Pipeline/Ingest/ChangeReader.swift", "values.isAltered",
            "false", within: "isAltered: values.isAltered ||"),
        .statement(
            "a step is settled and gives no permit back", in: run, "permit.yield()"),
    ]
}
