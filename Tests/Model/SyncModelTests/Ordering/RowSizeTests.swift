import SyncModel
import Testing

/// The limit of a row: a part has that of its batch, and the records of the history one more.
@Suite struct RowSizeTests {
    private func order(_ partition: inout Partition, _ change: Change, limit: Int) throws -> OrderingMachine.Step {
        var part = partition.part([change])
        part.maxRowBytes = limit
        return try partition.order(part)
    }

    @Test func aRowThatWouldExceedTheLimitIsRefused() throws {
        var partition = Partition()
        // 4 and 6 bytes; the bytes before each value in a record do not count.
        let created = try order(&partition, .edit(.note, ["1234", "567890"]), limit: 10)
        #expect(created.statuses.map(\.name) == ["applied"])
        let other = try order(&partition, .edit(.note, ["1234", "5678901"], id: "other"), limit: 10)
        #expect(
            other.statuses == [.refused(.rowTooLarge, message: "the row would have 11 bytes, at most 10 are allowed")])
        #expect(other.results[0].locator == nil)
        #expect(partition.row(.note, "other") == nil)
        // Edits of the parts of a row add up.
        let grown = try order(&partition, .edit(.note, ["12345"]), limit: 10)
        #expect(grown.statuses.map(\.code) == [.rowTooLarge])
        #expect(grown.results[0].locator != nil)
        #expect(partition.row(.note)?.values.json == ["1234", "567890"])
    }

    @Test func aRowAboveALoweredLimitCanBeMadeSmallerAndDeleted() throws {
        var partition = Partition()
        _ = try order(&partition, .edit(.note, ["123456", "123456"]), limit: 20)
        #expect(try order(&partition, .edit(.note, ["12345"]), limit: 5).statuses.map(\.name) == ["applied"])
        // Neither smaller nor larger.
        #expect(try order(&partition, .edit(.note, ["54321"]), limit: 5).statuses.map(\.name) == ["applied"])
        #expect(try order(&partition, .edit(.note, ["543210"]), limit: 5).statuses.map(\.name) == ["row_too_large"])
        #expect(try order(&partition, .delete(.note), limit: 5).statuses.map(\.name) == ["applied"])
    }

    @Test func theDefaultsOfLaterColumnsDoNotLockARow() throws {
        var partition = Partition()
        _ = try order(&partition, .edit(.note, ["12", "34"]), limit: 4)
        // Version 2 adds columns of 5 and 4 bytes.
        var part = partition.part([.edit(.note, ["21"])], schema: "v2")
        part.maxRowBytes = 4
        #expect(try partition.order(part).statuses.map(\.name) == ["applied"])
    }

    @Test func theRecordsOfTheHistoryLimitRowsToo() throws {
        let history = History(epoch: Partition.epoch, partitions: 1, recordSize: History.recordOverhead + 20)
        #expect(history.maximumRowBytes == 10)
        var partition = Partition()
        partition.machine = OrderingMachine(history)
        #expect(
            try order(&partition, .edit(.note, ["1234", "567890"]), limit: 1 << 20).statuses.map(\.name) == ["applied"])
        #expect(
            try order(&partition, .edit(.note, ["12345", "567890"], id: "other"), limit: 1 << 20).statuses.map(\.code)
                == [.rowTooLarge])
    }
}
