extension Catalog {
    private static let link = "Pipeline/FanOut/Serving/FanOut+Link.swift"
    private static let plan = "Pipeline/FanOut/Serving/PullPlan.swift"
    private static let step = "Pipeline/FanOut/Serving/PageStep.swift"
    private static let merge = "Pipeline/FanOut/Serving/RowMerge.swift"
    private static let search = "Pipeline/FanOut/Serving/RowSearch.swift"

    static let pulls: [Mutant] = [
        .expression(
            "a stream that is behind the vector answers that nothing is new", in: link,
            "pull.requiredHead <= heads.head", "true"),
        .expression("a stream that is behind answers resync", in: link, "end", "0", within: "or: end,"),
        .statement("no owner must resync", in: link, "if ahead.isEmpty { return [] }", "return []"),
        .expression(
            "a row at the vector's entry is sent again", in: plan, "device.head > from", "device.head >= from"),
        .expression(
            "the floor does not count for a new device", in: plan, "entry ?? knowledge.floor", "entry ?? TimeStamp.zero"
        ),
        .expression(
            "the floor hides newer rows of named devices", in: plan, "entry ?? knowledge.floor",
            "max(entry ?? .zero, knowledge.floor)", unfound: "no answer has entries below its floor"),
        .expression(
            "a drained entry is not raised", in: plan, "max(sent, device.head)", "sent"),
        .expression(
            "an entry of a device without rows is dropped", in: plan, "named < knowledge.entries.count", "false",
            unfound: "every device that an answer names has rows"),
        .statement(
            "a cut page does not raise entries", in: plan, "known[device.knowledgeID] = timeStamp"),
        .expression(
            "the floor of a cut page falls", in: plan, "$0 >= knowledge.floor ? $0 : nil", "$0",
            unfound: "no answer has entries below its floor, so the rows of a cut page are above it"),
        .expression(
            "entries above the floor of a cut page are dropped", in: plan, "$0.value > floor", "false",
            unfound: "needs a compact request with named entries whose page is cut"),
        .expression("a page exceeds its bytes", in: step, "isEmpty || size <= bytes", "true"),
        .expression(
            "a row that is larger than a page is never sent", in: step, "isEmpty || size <= bytes", "size <= bytes",
            unfound: "no row of the simulation is larger than its smallest page"),
        .statement("a page exceeds its limit", in: step, "rows -= 1"),
        .statement(
            "a held row after a cut counts as passed", in: step, "heldBehind.append(row)",
            "passed[row.device] = row.timeStamp"),
        .expression("held rows are sent", in: step, "pull.held.contains(row.timeStamp)", "false"),
        .statement("hasMore is false after a cut", in: step, "rows.hasMore = true"),
        .expression(
            "rows of several devices are not in order", in: merge,
            "entries[child].timeStamp < entries[least].timeStamp", "entries[child].timeStamp > entries[least].timeStamp"
        ),
        .expression(
            "a run of one device's rows ignores the others", in: merge,
            "waiting.first.map({ next.timeStamp < $0.timeStamp }) ?? true", "true"),
        .expression(
            "a conflict's row is read beyond the window", in: search,
            "target.change == first || json.count <= bytesLeft", "true"),
        .expression(
            "a conflict's row that is larger than a page is not read", in: search,
            "target.change == first || json.count <= bytesLeft", "json.count <= bytesLeft",
            unfound: "no row of the simulation is larger than its smallest page"),
        .expression(
            "rows before the window are read", in: search, "result.index >= window.from", "true"),
        .expression(
            "a conflict shows another row", in: search, "search.moved.removeValue(forKey: row)",
            "search.moved.removeValue(forKey: search.moved.first!.key)",
            unfound: "needs two conflicts whose rows were both written again before they are read"),
        .statement(
            "a read that waits for a thread is not started", in: "Pipeline/FanOut/Serving/ReaderPool.swift",
            "for (turn, thread) in started { turn.fulfil(thread) }",
            within: "for (turn, thread) in started { turn.fulfil(thread) }\n        idle?.fulfil(())"),
        .statement(
            "a result of a file that was replaced is returned", in: "Pipeline/FanOut/Serving/ReaderPool.swift",
            "try partition.require(generation: generation)",
            unfound: "the page was read from the older file as it was, which is still a point of the owner's order"),
    ]
}
