import ChangeLog
import Testing

@testable import LocalLog

@Suite struct RecordWindowTests {
    private func record(_ offset: Int64, bytes: Int = 0) -> LogRecord {
        LogRecord(offset: offset, time: 0, key: [], value: [UInt8](repeating: 0, count: bytes))
    }

    @Test func keepsTheNewestRecordsWithinItsLimit() {
        var window = RecordWindow(maximumBytes: 64 * 10)
        for offset in 0..<1000 {
            window.append([record(Int64(offset))])
            #expect(window.start == Int64(max(0, offset - 9)))
        }
        #expect(window.all.map(\.offset) == Array(990..<1000))
        window.append([record(1000, bytes: 10_000)])
        #expect(window.start == nil)
        window.append([record(1001)])
        #expect(window.all.map(\.offset) == [1001])
    }

    @Test func findsOnlyItsRecords() {
        var window = RecordWindow(maximumBytes: 64 * 10)
        window.append((5..<25).map { record($0) })
        #expect(window.records(from: 14, maximumBytes: 1000) == nil)
        #expect(window.records(from: 25, maximumBytes: 1000) == nil)
        #expect(window.records(from: 15, maximumBytes: 1000)?.map(\.offset) == Array(15..<25))
        #expect(window.records(from: 20, maximumBytes: 0)?.map(\.offset) == [20])
        #expect(window.records(from: 20, maximumBytes: 128)?.map(\.offset) == [20, 21])
        #expect(window.records(from: 20, maximumBytes: 129)?.map(\.offset) == [20, 21, 22])
    }

    @Test func dropsRemovedRecords() {
        var window = RecordWindow(maximumBytes: 1 << 20)
        window.append((0..<100).map { record($0) })
        window.drop(before: 90)
        #expect(window.all.map(\.offset) == Array(90..<100))
        window.append([record(100)])
        #expect(window.records(from: 95, maximumBytes: 1 << 20)?.map(\.offset) == Array(95...100))
    }
}
