extension Catalog {
    private static let appending = "Pipeline/Gateway/Uploads/UploadProducer.swift"
    private static let uploads = "Pipeline/Gateway/Uploads/UploadHandlers.swift"
    private static let rates = "Pipeline/Gateway/RateLimits/RateLimits.swift"
    private static let polls = "Pipeline/Gateway/Pulls/PullHandlers.swift"
    private static let page = "Pipeline/Gateway/Pulls/PullPage.swift"
    private static let outcome = "Pipeline/Gateway/Outcomes/BatchOutcome.swift"
    private static let shown = "Pipeline/Gateway/Outcomes/ShownRows.swift"
    private static let handler = "Pipeline/Gateway/Requests/GatewayHandler.swift"
    private static let admission = "Pipeline/Gateway/Requests/GatewayHandler+Admission.swift"
    private static let tasks = "Pipeline/Gateway/Requests/GatewayHandler+Tasks.swift"

    static let gateway: [Mutant] = [
        .expression(
            "an upload is acknowledged before the log has it", in: appending,
            "creation.value.get().append([record])",
            """
            { () async throws(ChangeLogError) -> [Int64] in
                let producer = try await creation.value.get()
                _ = try await producer.enqueue([record])
                return [0]
            }()
            """),
        .statement("a failed producer is kept", in: appending, "await discard(creation, generation)"),
        .expression(
            "an upload is appended to another partition", in: appending, "partitioning.partition(of: caller)",
            "(partitioning.partition(of: caller) + 1) % partitioning.count"),
        .expression(
            "a batch of another epoch is accepted", in: uploads, "!epoch.utf8.elementsEqual(history.epoch.utf8)",
            "false"),
        .statement(
            "the bytes of an upload are never given back", in: uploads,
            "quota.leave(caller.syncID, bytes: bytes)"),
        .statement("the rate of a caller is not limited", in: rates, "ofCaller.take(cost, callerLimits)"),
        .expression(
            "the page of a sync may be older than its outcome", in: uploads, "batch?.heads ?? [:]", "[:]"),
        .statement(
            "a pull need not cover the batches that it includes", in: polls,
            "leastHeads.merge(outcome.heads, uniquingKeysWith: max)",
            unfound: "needs a fan-out that is behind the one with the outcome, between two requests of one pull"),
        .statement(
            "a long poll is not woken by new rows", in: polls, "wakeup.signal()",
            within: "{ _, _ in wakeup.signal() }"),
        .statement(
            "a long poll does not end", in: polls, "wakeup.signal()",
            within: "catch { return }\n            wakeup.signal()"),
        .expression("a long poll ends without news", in: polls, "page.hasNews(pages)", "true"),
        .expression(
            "a long poll does not count rows as news", in: page,
            "rows.count > 0 || rows.hasMore || moved(page.owner, rows)", "rows.hasMore"),
        .expression(
            "a vector of another epoch is accepted", in: page,
            "envelope.epoch.map { !$0.utf8.elementsEqual(server.epoch.utf8) } ?? false", "false"),
        .statement(
            "owners that are no longer granted are not named", in: page,
            "if caller.grants.count(where: { named[$0.owner] != nil }) == named.count { return [] }", "return []"),
        .expression(
            "hasMore is false on a cut page", in: page, "rows.hasMore",
            "false", within: "if case .rows(let rows) = $0.content { rows.hasMore } else { false }"),
        .expression(
            "a cut page of a compact vector has the head as floor", in: page, "!rows.hasMore", "true",
            within: "envelope.isCompact, !rows.hasMore"),
        .statement(
            "a cut page does not name its head", in: page, "heads.append((page.owner, head))",
            unfound: "needs a fan-out that lacks a row which was written again between two pages of a pull"),
        .statement(
            "the head of a cut page is not read", in: "Pipeline/Gateway/Requests/Envelope.swift",
            "knowledge.insert(cutFrom: try Self.timeStamp(head, \"head\"), of: try Self.owner(owner))"),
        .expression(
            "the row of a conflict is shown to a caller who may not read it", in: shown, "caller.mayRead(part.owner)",
            "true"),
        .expression(
            "a caller who may not read an owner has its rows read", in: shown, "caller.mayRead(owner) ? window : nil",
            "window", unfound: "the rows are read and not shown: ShownRows leaves them out once more"),
        .expression(
            "the rows of conflicts exceed a page", in: shown,
            "index != window.from && bytes > window.maximumBytes", "false"),
        .statement(
            "the row of two conflicts is shown twice", in: outcome,
            "if first != result.index { return .sameAs(first) }"),
        .expression(
            "the rows that were left out are not named", in: outcome, "batch != nil", "false",
            within: "if batch != nil, let rowsFrom"),
        .expression(
            "a repeat leaves rows out of the page", in: outcome, "!isRepeat", "true",
            within: "guard !isRepeat, refusal",
            unfound: "a row that a repeat would leave out is one that its device has written and holds"),
        .expression(
            "a part that is a repeat leaves rows out of the page", in: outcome, "!part.outcome.isRepeat", "true",
            unfound: "a row that a repeat would leave out is one that its device has written and holds"),
        .expression(
            "rows that the device does not hold whole are left out", in: outcome, "known[creator] >= from", "true"),
        .expression(
            "a vector at the row's earlier version does not count as held", in: outcome, "known[creator] >= from",
            "known[creator] > from",
            unfound: "sends a row that the device holds already: that costs bytes, and is exact all the same"),
        .expression(
            "the outcome of a repeat counts as the first", in: "Pipeline/Gateway/Outcomes/OutcomeCollector.swift",
            "true",
            "false", within: "isRepeat: true) { (_, owner, window)",
            unfound: "a row that a repeat would leave out is one that its device has written and holds"),
        .statement(
            "a request that has ended still counts as waiting", in: tasks,
            "self.waiting.wrappingSubtract(1, ordering: .relaxed)"),
        .expression(
            "a refusal does not say when to come back", in: "Pipeline/Gateway/Requests/Problem.swift",
            "retryAfter ?? 1", "retryAfter"),
        .expression(
            "a body of the largest size is refused", in: handler, "body.count <= limits.maxBatchBytes",
            "body.count < limits.maxBatchBytes"),
        .expression(
            "a body above the largest size is read", in: admission,
            "route == .device ? Self.maximumUnusedBody : limits.maxBatchBytes", "Int.max",
            unfound: "the handler refuses it a second time, when it parses the body"),
    ]
}
