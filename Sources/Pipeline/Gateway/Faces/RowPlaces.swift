import JSONText
import SyncModel

/// Where the parts of a row are in its JSON, in which a fan-out has them in one order (`RowJSON`).
///
/// Reading in this order compares names instead of looking for them, which is half of the cost.
struct RowPlaces {
    let id: Place
    let timeStamp: Int64
    let timeStampPlace: Place
    let version: Int64
    let isDeleted: Bool
    /// `nil` unless the table was under lastWriteWins.
    let updatedAt: Place?
    /// The syncId of its newest version's device.
    let caller: Place
    /// The knowledgeId of its newest version's device.
    let author: Place
    /// The object of its columns.
    let values: Place

    /// - Returns: `nil` where there is no row.
    init?(_ json: Span<UInt8>, at range: Range<Int>) {
        guard range.upperBound <= json.count else { return nil }
        var index = range.lowerBound
        guard Self.string(#"{"table":"#, &index, json) != nil, let id = Self.string(#","id":"#, &index, json),
            Self.string(#","syncId":"#, &index, json) != nil,
            Self.string(#","knowledgeId":"#, &index, json) != nil,
            let timeStamp = Self.number(#","timeStamp":"#, &index, json),
            let version = Self.number(#","version":"#, &index, json),
            let isDeleted = Self.flag(#","deleted":"#, &index, json)
        else { return nil }
        let updatedAt = Self.string(#","updatedAt":"#, &index, json)
        guard let caller = Self.string(#","writer":{"syncId":"#, &index, json),
            let author = Self.string(#","knowledgeId":"#, &index, json), json.pass(#"},"values":"#, &index)
        else { return nil }
        // The rest, whatever it has: it is copied, or read by its members.
        let end = range.upperBound - 1
        guard end - index >= 2, json[index] == UInt8(ascii: "{"), json[end - 1] == UInt8(ascii: "}"),
            json[end] == UInt8(ascii: "}")
        else { return nil }
        (self.id, self.updatedAt) = (id, updatedAt)
        (self.timeStamp, timeStampPlace) = timeStamp
        (self.version, self.isDeleted) = (version.number, isDeleted)
        (self.caller, self.author, values) = (caller, author, Place(index, end))
    }

    private static func string(_ name: StaticString, _ index: inout Int, _ json: Span<UInt8>) -> Place? {
        guard json.pass(name, &index), index < json.count, json[index] == UInt8(ascii: "\""),
            let end = JSONRanges.end(ofValue: index, in: json)
        else { return nil }
        defer { index = end }
        return Place(index, end)
    }

    private static func number(
        _ name: StaticString, _ index: inout Int, _ json: Span<UInt8>
    ) -> (number: Int64, place: Place)? {
        guard json.pass(name, &index) else { return nil }
        let start = index
        var number: Int64 = 0
        while index < json.count, case let digit = json[index] &- UInt8(ascii: "0"), digit <= 9 {
            // Numbers of rows are below 2^53.
            guard index - start < 18 else { return nil }
            number = number * 10 + Int64(digit)
            index += 1
        }
        return index > start ? (number, Place(start, index)) : nil
    }

    private static func flag(_ name: StaticString, _ index: inout Int, _ json: Span<UInt8>) -> Bool? {
        guard json.pass(name, &index) else { return nil }
        if json.pass("false", &index) { return false }
        return json.pass("true", &index) ? true : nil
    }
}

extension RowPlaces {
    /// Where a value is in a page.
    struct Place: Sendable {
        private let start: UInt32
        private let end: UInt32

        init(_ start: Int, _ end: Int) { (self.start, self.end) = (UInt32(start), UInt32(end)) }

        var range: Range<Int> { Int(start)..<Int(end) }

        /// Without quotes or braces.
        var content: Range<Int> { Int(start) + 1..<Int(end) - 1 }

        /// How many members the object has; `nil` where it is none.
        func memberCount(in json: Span<UInt8>) -> Int? {
            var count = 0
            let end = JSONRanges.forEachMember(in: json, objectAt: range.lowerBound) { _, start in
                count += 1
                return JSONRanges.end(ofValue: start, in: json)
            }
            return end == range.upperBound ? count : nil
        }
    }
}

extension Span<UInt8> {
    /// Moves an index past a text, if it is there.
    @inline(__always) fileprivate func pass(_ text: StaticString, _ index: inout Int) -> Bool {
        let length = text.utf8CodeUnitCount
        guard count - index >= length else { return false }
        if length < 8 {
            for offset in 0..<length where self[index + offset] != text.utf8Start[offset] { return false }
        } else {
            // Eight bytes at a time, the last of which may be compared twice; in bounds by the conditions.
            var offset = 0
            while offset < length {
                let start = Swift.min(offset, length - 8)
                let expected = UnsafeRawPointer(text.utf8Start).loadUnaligned(fromByteOffset: start, as: UInt64.self)
                guard bytes.unsafeLoadUnaligned(fromByteOffset: index + start, as: UInt64.self) == expected else {
                    return false
                }
                offset += 8
            }
        }
        index += length
        return true
    }
}
