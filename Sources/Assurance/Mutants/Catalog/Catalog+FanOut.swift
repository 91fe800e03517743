extension Catalog {
    private static let position = "Pipeline/FanOut/File/StreamPosition.swift"
    private static let transaction = "Pipeline/FanOut/File/FileTransaction.swift"
    private static let rows = "Pipeline/FanOut/File/StreamFile+Rows.swift"
    private static let records = "Pipeline/FanOut/File/OutcomeRecord.swift"
    private static let served = "Pipeline/FanOut/Serving/ServedPartition.swift"
    private static let registry = "Pipeline/FanOut/Serving/OutcomeRegistry.swift"
    private static let outcomes = "Pipeline/FanOut/Serving/FanOut+Outcomes.swift"
    private static let rebuild = "Pipeline/FanOut/Rebuilding/Rebuild.swift"

    static let fanOut: [Mutant] = [
        .expression(
            "a piece that is repeated is applied again", in: position, "isComplete || piece <= self.piece",
            "isComplete || piece < self.piece", unfound: "needs an ordering that dies between two pieces of one result"),
        .expression(
            "a result that is repeated is applied again", in: position, "isComplete || piece <= self.piece",
            "piece <= self.piece", unfound: "no piece follows the last one of a result"),
        .expression(
            "a rebuilt stream lacks the next result", in: position, "stored.state.nextOffset - 1",
            "stored.state.nextOffset"),
        .expression(
            "a rebuilt stream has the last result again", in: position, "stored.state.nextOffset - 1",
            "stored.state.nextOffset - 2"),
        .expression(
            "the result of the newest upload counts as unknown", in: position,
            "UploadProgress(offset: upload.offset, part: part) <= seen",
            "UploadProgress(offset: upload.offset, part: part) < seen",
            unfound: "the result is still in memory when its gateway asks; who asks later repeats the batch"),
        .expression(
            "a stream names the offset of its last record as the next", in: transaction, "record.offset + 1",
            "record.offset"),
        .statement(
            "an older version of a row stays in the stream", in: rows,
            "try removeRow(row.key, owner: numbers.owner, device: device, at: before, &transaction.state)"),
        .expression(
            "a stream keeps too few outcomes", in: records, "Int64(Outcome.keptPerDevice)", "2"),
        .statement(
            "an outcome is not removed before its place is used again", in: records,
            "if isFirst { try clear(slot, of: uploader.number, &transaction.state) }", steps: 400),
        .statement(
            "subscribers are not notified of applied rows", in: served, "subscriptions.notify(moved)",
            within: "outcomes.post(applied.pieces, position: applied.position)\n        subscriptions.notify(moved)"),
        .statement(
            "subscribers are not notified of a stream that was opened", in: served, "subscriptions.notify(moved)",
            within: "outcomes.reset(position)\n        subscriptions.notify(moved)",
            unfound: "a poll during faults ends at its own time, and no stream is opened while polls are judged"),
        .statement(
            "applied results are not passed on", in: served,
            "outcomes.post(applied.pieces, position: applied.position)"),
        .statement(
            "pulls that wait for a stream are not woken", in: served,
            "for catchUp in reached { catchUp.waiter.fulfil(.reached) }",
            within: "for catchUp in reached { catchUp.waiter.fulfil(.reached) }\n        outcomes.post",
            unfound: "the pull ends as not_ready at its limit, and its device repeats it"),
        .expression(
            "a pull waits for a record after the end of the log", in: served, "nextOffset >= offset",
            "nextOffset > offset"),
        .statement("readers keep the file that was replaced", in: served, "state.generation += 1"),
        .statement(
            "those who wait for an outcome are not woken", in: registry,
            "answers += state.take(.part(part)).map { ($0, answer) }"),
        .statement(
            "those who wait for a batch are not woken", in: registry,
            "answers += state.take(.batch(batch, key)).map { ($0, .stored) }"),
        .expression(
            "an outcome has the results of its first piece alone", in: registry, "results + piece.results", "results"),
        .expression(
            "the outcome of another upload with the same number is taken", in: outcomes,
            "source.upload == part.upload", "true",
            unfound:
                "needs a refused batch with a number that was used before, whose result has left the memory of its fan-out"
        ),
        .expression(
            "a stream that is behind an outcome is searched for its rows", in: outcomes,
            "search.isCovered(by: snapshot.heads)", "true",
            unfound: "needs a conflict that is asked for while a stream is rebuilt from tables that are behind it"),
        .statement(
            "a rebuilt stream has no outcomes", in: rebuild,
            "for outcome in outcomes { try keep(OutcomePiece(outcome), &transaction) }"),
        .statement(
            "a rebuilt stream lacks its last rows", in: rebuild, "try flush(&state)",
            within: "try flush(&state)\n            try file.finish"),
        .expression(
            "a stream is rebuilt from empty tables after results were removed",
            in: "Pipeline/FanOut/Rebuilding/PartitionWorker+Rebuild.swift", "piece.changesOffset == changes.start",
            "true", unfound: "needs retention that removes results before the tables hold any"),
        .expression(
            "the write position of a damaged stream is kept", in: "Pipeline/FanOut/Following/PartitionWorker.swift",
            ".rebuild", ".open(.heads)", within: "start = .rebuild",
            unfound: "most damage is found when a stream is opened, which rebuilds it all the same"),
    ]
}
