import SyncModel
import Testing

@Suite struct RowValuesTests {
    @Test func encodesEachValueAsARepeatedProtobufField() {
        let values = RowValues(json: ["1", nil, "\"é\""])
        #expect(values.bytes == [0x0A, 1, 0x31, 0x0A, 0, 0x0A, 4, 0x22, 0xC3, 0xA9, 0x22])
        #expect(values.count == 3)
        #expect(values.ranges == [2..<3, 5..<5, 7..<11])
        #expect(RowValues().bytes.isEmpty && RowValues().count == 0)
    }

    @Test(arguments: [1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
    func readsBackValuesOfAnySize(size: Int) throws {
        let long = String(repeating: "7", count: size)
        let values = RowValues(json: ["1", long, nil, "2"])
        let read = try #require(RowValues(encoded: values.bytes))
        #expect(read == values)
        #expect(read.json == ["1", long, "", "2"])
        var seen: [Int: Int] = [:]
        read.forEachColumn { column, json in seen[column] = json.count }
        #expect(seen == [0: 1, 1: size, 2: 0, 3: 1])
    }

    static let malformed: [[UInt8]] = [
        [0x0A], [0x0A, 0x01], [0x0A, 0x02, 0x31], [0x0A, 0x80], [0x31], [0x12, 0x01, 0x31], [0x08, 0x01],
        [0x0A, 0x01, 0x31, 0x0A], [0x0A, 0x01, 0x31, 0x00],
        // Overlong: zero in two bytes, one in two, zero in five.
        [0x0A, 0x80, 0x00], [0x0A, 0x81, 0x00, 0x31], [0x0A, 0x80, 0x80, 0x80, 0x80, 0x00],
        // Lengths beyond the bytes, beyond 32 bits, beyond 64 bits.
        [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0x31], [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x31],
        [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x31],
        [0x0A, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x31],
    ]

    @Test(arguments: malformed)
    func refusesMalformedValues(bytes: [UInt8]) {
        #expect(RowValues(encoded: bytes) == nil)
        #expect(RowValues(encoded: [0x0A, 0x01, 0x31] + bytes) == nil)
    }

    /// Row, change and result.
    static let merges: [([String?], [String?], [String?])] = [
        (["1", "2"], ["3", "4"], ["3", "4"]),
        (["1", "2"], [nil, "4"], ["1", "4"]),
        (["1", "2"], ["3"], ["3", "2"]),
        (["1", "2"], [], ["1", "2"]),
        (["1"], [nil, nil, "4"], ["1", nil, "4"]),
        ([], ["3", nil, "4"], ["3", nil, "4"]),
        (["1", "2"], ["null", nil], ["null", "2"]),
    ]

    @Test(arguments: merges)
    func mergesColumnByColumn(row: [String?], change: [String?], merged: [String?]) {
        #expect(RowValues(json: row).merged(with: RowValues(json: change)) == RowValues(json: merged))
    }

    @Test(
        arguments: [
            ([], 0, true), ([], 1, false), (["1"], 1, true), (["1"], 2, false), (["1", nil], 2, false),
            (["1", nil], 1, true), ([nil, "1"], 1, false),
        ] as [([String?], Int, Bool)])
    func knowsWhichColumnsAreWritten(values: [String?], count: Int, isAll: Bool) {
        #expect(RowValues(json: values).writesAny == values.contains { $0 != nil })
        #expect(RowValues(json: values).writesAll(count) == isAll)
    }

    @Test func liftsToTheColumnsOfALaterVersionOnly() {
        let table = Table(
            name: "t",
            columns: [
                Column(name: "a", type: .integer),
                Column(name: "b", type: .integer, defaultValue: Array("5".utf8)),
                Column(name: "c", type: .integer),
            ])
        #expect(RowValues(json: ["1"]).lifted(to: table).json == ["1", "5", "null"])
        #expect(RowValues(json: ["1", "2"]).lifted(to: table).json == ["1", "2", "null"])
        let whole = RowValues(json: ["1", "2", "3"])
        #expect(whole.lifted(to: table) == whole)
        let longer = RowValues(json: ["1", "2", "3", "4"])
        #expect(longer.lifted(to: table) == longer)
    }

    @Test func rethrowsErrorsOfTheBody() {
        struct Stop: Error {}
        var seen: [Int] = []
        #expect(throws: Stop.self) {
            try RowValues(json: ["1", "2", "3"]).forEachColumn { column, _ throws(Stop) in
                seen.append(column)
                if column == 1 { throw Stop() }
            }
        }
        #expect(seen == [0, 1])
    }
}
