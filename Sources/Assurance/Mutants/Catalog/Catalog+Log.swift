extension Catalog {
    static let supervision: [Mutant] = [
        .statement(
            "the group of a stage is not left", in: "Pipeline/PartitionSupervision/StageContext.swift",
            "await membership.leave()", unfound: "a simulated group drops the members of a process that ends")
    ]

    static let log: [Mutant] = [
        .expression(
            "a producer appends after a failed append", in: "Adapters/MemoryChangeLog/MemoryWriter.swift",
            "append.isBlocked", "false",
            unfound: "the simulated producer rejects what follows a failed append before the log does"),
        .expression(
            "a reader skips a record", in: "Adapters/LocalLog/LocalReader.swift", "last.offset + 1", "last.offset + 2"),
        .expression(
            "retention removes one record too many", in: "Adapters/MemoryChangeLog/MemoryWriter.swift",
            "min(oldEnd, consumed ?? .max, floor, tail.range.end - 1)",
            "min(oldEnd, consumed ?? .max, floor, tail.range.end - 1) + 1",
            unfound: "ordered has no consumer whose records it must keep, and a stream that lacks one is rebuilt"),
        .expression(
            "an append that failed is acknowledged", in: "Adapters/MemoryChangeLog/MemoryWriter.swift",
            ".failure(fault.error)", ".success([0])", within: "return append.resolve(.failure(fault.error))"),
    ]
}
