import SyncModel
import Testing

/// What an owner may have in the tables.
@Suite struct OwnerQuotaTests {
    private func order(
        _ partition: inout Partition, _ changes: Change..., rows: Int = 0, bytes: Int = 0, isAtomic: Bool = false,
        rules: Int = RulesVersion.current
    ) throws -> [String] {
        var part = partition.part(changes, isAtomic: isAtomic)
        (part.maxOwnerRows, part.maxOwnerBytes, part.rules) = (rows, bytes, rules)
        return try partition.order(part).statuses.map(\.name)
    }

    private func create(_ id: String, _ value: String = "1") -> Change { .edit(.note, [value, "1"], id: id) }

    @Test func rowsUpToTheQuotaAreCreated() throws {
        var partition = Partition()
        #expect(
            try order(&partition, create("a"), create("b"), create("c"), rows: 2)
                == ["applied", "applied", "quota_exceeded"])
        #expect(try order(&partition, create("c"), rows: 2) == ["quota_exceeded"])
        #expect(try order(&partition, create("c"), rows: 3) == ["applied"])
        #expect(partition.usage[.abc] == OwnerUsage(rows: 3, bytes: 6))
        #expect(partition.row(.note, "c")?.version == 1)
    }

    @Test func otherOwnersAndZeroAreNotLimited() throws {
        var partition = Partition()
        #expect(try order(&partition, create("a"), create("b"), rows: 0) == ["applied", "applied"])
        var part = partition.part([create("a")], from: .k1OfDef)
        part.maxOwnerRows = 1
        #expect(try partition.order(part).statuses.map(\.name) == ["applied"])
        #expect(partition.usage == [.abc: OwnerUsage(rows: 2, bytes: 4), .def: OwnerUsage(rows: 1, bytes: 2)])
    }

    @Test func editsThatDoNotGrowAndDeletesPassAboveTheQuota() throws {
        var partition = Partition()
        _ = try order(&partition, create("a", "1234"), create("b", "1234"))
        #expect(
            try order(
                &partition, .edit(.note, ["4321"], id: "a"), .edit(.note, ["123"], id: "a"),
                .edit(.note, ["1234"], id: "a"), .delete(.note, id: "b"), create("c"), rows: 1, bytes: 3)
                == ["applied", "applied", "quota_exceeded", "applied", "quota_exceeded"])
        #expect(partition.usage[.abc] == OwnerUsage(rows: 1, bytes: 4, deletedRows: 1, deletedBytes: 5))
    }

    @Test func bytesAreCountedToTheLast() throws {
        var partition = Partition()
        #expect(try order(&partition, create("a", "123"), bytes: 3) == ["quota_exceeded"])
        #expect(try order(&partition, create("a", "123"), create("b", "1"), bytes: 5) == ["applied", "quota_exceeded"])
        #expect(try order(&partition, .edit(.note, ["1234"], id: "a"), bytes: 5) == ["applied"])
        #expect(try order(&partition, .edit(.note, ["12345"], id: "a"), bytes: 5) == ["quota_exceeded"])
    }

    @Test func aDeletedRowFreesItsShareAndARevivedOneTakesIt() throws {
        var partition = Partition()
        #expect(
            try order(&partition, create("a"), .delete(.note, id: "a"), create("b"), rows: 1)
                == ["applied", "applied", "applied"])
        let tombstone = try #require(partition.row(.note, "a")?.timeStamp)
        let revival = Change.edit(.note, ["1", "1"], id: "a", base: tombstone.rawValue)
        #expect(try order(&partition, revival, rows: 1) == ["quota_exceeded"])
        #expect(try order(&partition, .delete(.note, id: "b"), revival, rows: 1) == ["applied", "applied"])
        #expect(partition.usage[.abc] == OwnerUsage(rows: 1, bytes: 2, deletedRows: 1, deletedBytes: 2))
        // An edit of a tombstone grows that.
        #expect(try order(&partition, .edit(.note, ["123"], id: "b"), rows: 1) == ["deleted"])
        #expect(partition.usage[.abc]?.deletedBytes == 4)
    }

    @Test func deletedRowsAreLimitedToTenTimesTheQuota() throws {
        var partition = Partition()
        for number in 0..<9 {
            #expect(
                try order(&partition, create("r\(number)"), .delete(.note, id: "r\(number)"), rows: 1)
                    == ["applied", "applied"])
        }
        #expect(try order(&partition, create("x"), create("y"), rows: 2) == ["applied", "applied"])
        #expect(
            try order(&partition, .delete(.note, id: "x"), .delete(.note, id: "y"), rows: 1) == ["applied", "applied"])
        #expect(try order(&partition, create("z"), rows: 1) == ["quota_exceeded"])
        // 22 bytes of deleted rows.
        #expect(try order(&partition, create("z", "1234567"), bytes: 2) == ["quota_exceeded"])
        #expect(try order(&partition, .edit(.note, ["12"], id: "x"), bytes: 2) == ["quota_exceeded"])
        #expect(try order(&partition, .edit(.note, ["12"], id: "x"), bytes: 3) == ["deleted"])
    }

    @Test func anAbortedPartUsesNothing() throws {
        var partition = Partition()
        _ = try order(&partition, create("a"))
        let before = partition.usage
        #expect(
            try order(&partition, create("b"), create("c"), rows: 2, isAtomic: true) == [
                "batch_aborted", "quota_exceeded",
            ])
        #expect(partition.usage == before && partition.row(.note, "b") == nil)
        #expect(try order(&partition, create("b"), rows: 2) == ["applied"])
    }

    @Test func aRefusedChangeShowsTheRow() throws {
        var partition = Partition()
        _ = try order(&partition, create("a"))
        var part = partition.part([.edit(.note, ["123"], id: "a"), create("b")])
        part.maxOwnerBytes = 3
        let step = try partition.order(part)
        #expect(step.results.map { $0.locator?.timeStamp } == [partition.row(.note, "a")?.timeStamp, nil])
        #expect(
            step.statuses[0]
                == .refused(
                    .quotaExceeded,
                    message:
                        "the values of this owner's rows may have at most 3 bytes: delete rows or make some smaller"))
        #expect(step.usage == nil)
    }

    @Test(arguments: [1, 2]) func earlierRulesCountWithoutAQuota(rules: Int) throws {
        var partition = Partition()
        #expect(
            try order(&partition, create("a"), create("b"), rows: 1, bytes: 1, rules: rules) == ["applied", "applied"])
        #expect(partition.usage[.abc] == OwnerUsage(rows: 2, bytes: 4))
    }

    /// Values that are defaults count nothing, so a version that adds columns changes no usage.
    @Test func theUsageIsTheSumOfTheRowsInEverySchemaVersion() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["123", "null"], id: "a"))
        #expect(partition.usage[.abc] == OwnerUsage(rows: 1, bytes: 3))
        try partition.send(.edit(.note, ["1234"], id: "a"), schema: "v2")
        #expect(partition.usage[.abc] == OwnerUsage(rows: 1, bytes: 4))
        try partition.send(.edit(.note, ["1"], id: "a"), .delete(.note, id: "a"), schema: "v2")
        #expect(partition.usage[.abc] == OwnerUsage(deletedRows: 1, deletedBytes: 1))
    }
}
