import Foundation
import JSONText

/// Writes the app's values as the contract's JSON, by the type of the server's column.
enum WireValue {
    /// Why a value cannot be sent.
    struct Unsendable: Error {
        let reason: String
    }

    /// Appends a value.
    ///
    /// - Throws: `Unsendable` if the column's type has no such value. What the server can judge, such as lengths and ranges, is
    ///   sent, so that its refusal is the one answer.
    static func write(_ value: SQLValue, as type: ColumnType, to json: inout JSONWriter) throws {
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

    private static func document(_ bytes: [UInt8]) throws -> [UInt8] {
        do {
            _ = try JSONSerialization.jsonObject(with: Data(try utf8(bytes)), options: .fragmentsAllowed)
        } catch {
            throw Unsendable(reason: "a text that is not JSON, in a column of type json")
        }
        return bytes
    }

    // MARK: Times

    /// The years 1 to 9999, which the contract has, in seconds since 1970.
    private static let times = -62_135_596_800.0..<253_402_300_800.0

    private static func writeTimestamp(_ value: SQLValue, to json: inout JSONWriter) throws {
        let text = try timestamp(value)
        json.value(text.span)
    }

    /// RFC 3339 is sent as it is; SQLite's and GRDB's form with a space, which is in UTC, with a T and a Z; a number as
    /// seconds since 1970.
    private static func timestamp(_ value: SQLValue) throws -> [UInt8] {
        switch value {
        case .text(var bytes):
            _ = try utf8(bytes)
            guard bytes.count > 10, bytes[10] == UInt8(ascii: " ") else { return bytes }
            bytes[10] = UInt8(ascii: "T")
            // 2026-01-02 03:04 lacks the seconds, which RFC 3339 demands.
            if bytes.count == 16 { bytes += Array(":00".utf8) }
            let hasOffset = bytes.last == UInt8(ascii: "Z") || bytes[11...].contains { $0 == 43 || $0 == 45 }
            return hasOffset ? bytes : bytes + [UInt8(ascii: "Z")]
        case .integer(let seconds) where times.contains(Double(seconds)):
            return text(ofSeconds: seconds, microseconds: 0)
        case .real(let time) where times.contains(time):
            let seconds = time.rounded(.down)
            let microseconds = Int64(((time - seconds) * 1_000_000).rounded())
            return microseconds == 1_000_000
                ? text(ofSeconds: Int64(seconds) + 1, microseconds: 0)
                : text(ofSeconds: Int64(seconds), microseconds: microseconds)
        default: throw unsendable(value, as: .timestamp)
        }
    }

    private static func text(ofSeconds seconds: Int64, microseconds: Int64) -> [UInt8] {
        // Days since 0000-03-01, in eras of 400 years; a year begins in March, so that a leap day is its last.
        let days = (seconds - (seconds % 86_400 + 86_400) % 86_400) / 86_400 + 719_468
        let second = (seconds % 86_400 + 86_400) % 86_400
        let era = (days >= 0 ? days : days - 146_096) / 146_097
        let dayOfEra = days - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let march = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * march + 2) / 5 + 1
        let month = march < 10 ? march + 3 : march - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        func digits(_ number: Int64, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let fraction = microseconds == 0 ? "" : "." + digits(microseconds, 6)
        return Array(
            ("\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))T\(digits(second / 3600, 2)):"
                + "\(digits(second / 60 % 60, 2)):\(digits(second % 60, 2))\(fraction)Z").utf8)
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
