import JSONText

/// Writes the app's values as the contract's JSON, by the type of the server's column.
package enum WireValue {
    /// Why a value cannot be sent.
    struct Unsendable: Error {
        let reason: String
    }

    /// Appends a value.
    ///
    /// - Throws: `Unsendable` if the column's type has no such value. What the server can judge, such as lengths and ranges, is
    ///   sent, so that its refusal is the one answer.
    package static func write(_ value: SQLValue, as type: ColumnType, to json: inout JSONWriter) throws {
        switch value {
        case .null: json.null()
        case .integer(let number): try write(number, as: type, to: &json)
        case .real(let number): try write(number, as: type, to: &json)
        case .text(let bytes): try write(text: bytes, as: type, to: &json)
        case .blob(let bytes): try write(blob: bytes, as: type, to: &json)
        }
    }

    private static func write(_ number: Int64, as type: ColumnType, to json: inout JSONWriter) throws {
        switch type {
        // A key of another table, which the contract spells as text.
        case .text, .uuid: json.value(String(number))
        case .integer, .decimal:
            if number.magnitude <= greatestNumber { json.value(number) } else { json.value(String(number)) }
        case .real, .json: json.value(number)
        case .boolean where number == 0 || number == 1: json.value(number == 1)
        case .timestamp: try writeTimestamp(.integer(number), to: &json)
        default: throw unsendable(.integer(number), as: type)
        }
    }

    private static func write(_ number: Double, as type: ColumnType, to json: inout JSONWriter) throws {
        guard number.isFinite else { throw unsendable(.real(number), as: type) }
        switch type {
        case .real, .integer, .decimal, .json: json.value(number)
        case .timestamp: try writeTimestamp(.real(number), to: &json)
        default: throw unsendable(.real(number), as: type)
        }
    }

    private static func write(text bytes: [UInt8], as type: ColumnType, to json: inout JSONWriter) throws {
        switch type {
        case .text, .uuid, .decimal:
            let text = try utf8(bytes)
            json.value(text.span)
        case .timestamp: try writeTimestamp(.text(bytes), to: &json)
        case .date:
            let date = try date(bytes)
            json.value(date.span)
        case .bytes: json.base64(bytes.span)
        case .json: json.raw(try document(bytes))
        default: throw unsendable(.text(bytes), as: type)
        }
    }

    private static func write(blob bytes: [UInt8], as type: ColumnType, to json: inout JSONWriter) throws {
        switch type {
        case .text, .uuid:
            guard let text = UUIDText.spell(bytes) else { throw unsendable(.blob(bytes), as: type) }
            json.value(text.span)
        case .bytes: json.base64(bytes.span)
        case .json: json.raw(try document(bytes))
        default: throw unsendable(.blob(bytes), as: type)
        }
    }

    /// The greatest integer that JSON's numbers hold exactly, by the contract.
    private static let greatestNumber: UInt64 = (1 << 53) - 1

    private static func utf8(_ bytes: [UInt8]) throws -> [UInt8] {
        if String(validating: bytes, as: UTF8.self) == nil { throw Unsendable(reason: "a text that is not UTF-8") }
        return bytes
    }

    /// How deep the server takes arrays and objects in a value.
    private static let maximumDepth = 64

    /// What the server would not read as JSON, it would refuse with the whole batch.
    private static func document(_ bytes: [UInt8]) throws -> [UInt8] {
        var reader = JSONReader(bytes[...], maximumDepth: maximumDepth)
        do {
            try reader.skip()
            try reader.finish()
        } catch is JSONReader.Malformed {
            throw Unsendable(
                reason: "a text that is not JSON of at most \(maximumDepth) levels, in a column of type json")
        }
        return bytes
    }

    // MARK: Times

    private static func writeTimestamp(_ value: SQLValue, to json: inout JSONWriter) throws {
        let text = try timestamp(value)
        json.value(text.span)
    }

    /// A time in UTC is sent in its canonical form, so that the server has what was sent.
    ///
    /// It may be RFC 3339, SQLite's and GRDB's form with a space, and a number as seconds since 1970. Another offset is the server's to convert.
    private static func timestamp(_ value: SQLValue) throws -> [UInt8] {
        switch value {
        case .text(var bytes):
            _ = try utf8(bytes)
            guard bytes.count > 10 else { return bytes }
            if bytes[10] == UInt8(ascii: " ") {
                bytes[10] = UInt8(ascii: "T")
                // 2026-01-02 03:04 lacks the seconds, which RFC 3339 demands.
                if bytes.count == 16 { bytes += Array(":00".utf8) }
                let hasOffset = bytes.last == UInt8(ascii: "Z") || bytes[11...].contains { $0 == 43 || $0 == 45 }
                if !hasOffset { bytes.append(UInt8(ascii: "Z")) }
            }
            return withSixDecimals(bytes)
        case .integer(let seconds):
            if let time = UTCTime(seconds: seconds) { return time.text }
        case .real(let seconds):
            if let time = UTCTime(seconds: seconds) { return time.text }
        default: break
        }
        throw unsendable(value, as: .timestamp)
    }

    /// `2026-01-02T03:04:05.678000Z` for `2026-01-02T03:04:05.678Z`; any other text as it is.
    private static func withSixDecimals(_ time: [UInt8]) -> [UInt8] {
        guard (20...27).contains(time.count), time[10] == UInt8(ascii: "T"), time.last == UInt8(ascii: "Z") else {
            return time
        }
        let decimals = time[19...].dropLast().dropFirst()
        guard time.count == 20 || time[19] == UInt8(ascii: ".") && !decimals.isEmpty,
            decimals.allSatisfy({ (48...57).contains($0) })
        else { return time }
        let zeros = Array(repeating: UInt8(ascii: "0"), count: 6 - decimals.count)
        return time[..<19] + [UInt8(ascii: ".")] + decimals + zeros + [UInt8(ascii: "Z")]
    }

    /// A date, also with the midnight that follows it in GRDB's dates.
    private static func date(_ bytes: [UInt8]) throws -> [UInt8] {
        guard bytes.count > 10, bytes[10] == UInt8(ascii: " ") || bytes[10] == UInt8(ascii: "T") else {
            return try utf8(bytes)
        }
        let time = bytes[11...].filter { (48...57).contains($0) }
        guard time.allSatisfy({ $0 == 48 }) else {
            throw Unsendable(reason: "a date with a time of day, in a column of type date")
        }
        return try utf8(Array(bytes[..<10]))
    }

    private static func unsendable(_ value: SQLValue, as type: ColumnType) -> Unsendable {
        let kind =
            switch value {
            case .null: "NULL"
            case .integer: "an integer"
            case .real: "a real number"
            case .text: "a text"
            case .blob(let bytes): "a blob of \(bytes.count) bytes"
            }
        return Unsendable(reason: "\(kind), in a column of type \(type)")
    }
}
