import JSONText

/// How an app spells the values of a column: a uuid as text or as a blob, a time as text, with a T or a space, or as a number.
///
/// The server has one canonical form of each value. A value that comes from it is written as the app would have written it.
package struct ValueSpelling: Equatable, Sendable {
    /// A value as the server sends it, in its type's canonical form.
    package enum Canonical: Equatable, Sendable {
        case null
        case boolean(Bool)
        case integer(Int64)
        case real(Double)
        case string([UInt8])
        /// JSON of a column of type json.
        case document([UInt8])

        /// A value of which apps may have different spellings, as text in the server's one.
        var text: [UInt8]? {
            switch self {
            case .string(let text), .document(let text): text
            case .null, .boolean, .integer, .real: nil
            }
        }
    }

    enum Form: Equatable, Sendable {
        /// As the server sends it.
        case canonical
        /// An integer, or a real number where it is none.
        case number
        /// A uuid in 16 bytes.
        case uuidBlob
        case uuidInUpperCase
        /// The character between date and time, how many decimals at least, and whether a Z ends it.
        case time(separator: UInt8, decimals: Int, hasZone: Bool)
        /// Seconds since 1970.
        case seconds(isReal: Bool)
        /// What follows the day in a date: a midnight.
        case day(suffix: [UInt8])
        /// Bytes as text.
        case text
        /// Text as a blob.
        case blob
    }

    let type: ColumnType
    let form: Form

    init(type: ColumnType, form: Form) {
        self.type = type
        self.form = form
    }

    /// The spelling of a value that the app has written; `nil` for NULL, and for what is no value of the type.
    package init?(of value: SQLValue, type: ColumnType) {
        self.type = type
        switch (type, value) {
        case (_, .null): return nil
        case (.text, .blob(let bytes)), (.uuid, .blob(let bytes)):
            guard bytes.count == UUIDText.byteCount else { return nil }
            form = .uuidBlob
        case (.text, .integer), (.uuid, .integer), (.decimal, .integer), (.decimal, .real): form = .number
        case (.uuid, .text(let bytes)):
            guard bytes.count == UUIDText.length else { return nil }
            form = UUIDText.isLowerCase(bytes) ? .canonical : .uuidInUpperCase
        case (.timestamp, .text(let bytes)):
            guard let time = Self.time(like: bytes) else { return nil }
            form = time
        case (.timestamp, .integer): form = .seconds(isReal: false)
        case (.timestamp, .real): form = .seconds(isReal: true)
        case (.date, .text(let bytes)):
            guard Self.isDay(bytes.prefix(10)), Self.isMidnight(bytes.dropFirst(10)) else { return nil }
            form = .day(suffix: Array(bytes.dropFirst(10)))
        case (.bytes, .text): form = .text
        case (.json, .blob): form = .blob
        default: form = .canonical
        }
    }

    /// The spelling of a column of a row.
    init?(of row: Row, at column: Int, type: ColumnType) {
        // Most texts are as the server has them, whatever they say: these are not read.
        let isAnyText = type == .text || type == .json || type == .decimal
        self.init(of: isAnyText && row.isText(at: column) ? .text([]) : row.value(at: column), type: type)
    }

    /// The spelling that a column's declaration suggests, where no value of the app shows it.
    package init(affinity: Affinity, type: ColumnType) {
        self.type = type
        form =
            switch (type, affinity) {
            case (.uuid, .none): .uuidBlob
            case (.text, .integer), (.uuid, .integer), (.decimal, .integer), (.decimal, .real), (.decimal, .numeric):
                .number
            case (.timestamp, .integer): .seconds(isReal: false)
            case (.timestamp, .real): .seconds(isReal: true)
            // A column declared DATETIME, in the form of GRDB and of SQLite's functions.
            case (.timestamp, .numeric): .time(separator: UInt8(ascii: " "), decimals: 3, hasZone: false)
            case (.bytes, .text): .text
            case (.json, .none): .blob
            default: .canonical
            }
    }

    /// Whether these are digits as in 2026-01-02.
    private static func isDay(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count == 10
            && zip(bytes, "0000-00-00".utf8).allSatisfy { $1 == UInt8(ascii: "-") ? $0 == $1 : isDigit($0) }
    }

    /// Whether this is nothing, or a time of day as in 00:00:00.000 without any digit but 0, after a space or a T.
    private static func isMidnight(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let separator = bytes.first else { return true }
        return isSeparator(separator) && bytes.count > 5 && bytes.dropFirst().allSatisfy { "0:.Z".utf8.contains($0) }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    private static func isSeparator(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "T") }

    private static func time(like bytes: [UInt8]) -> Form? {
        guard bytes.count > 11, isDay(bytes.prefix(10)), isSeparator(bytes[10]), isDigit(bytes[11]) else { return nil }
        let time = bytes[11...]
        // With another offset than Z it would not be the app's spelling, whatever is written.
        if time.contains(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") }) { return .canonical }
        let point = time.firstIndex(of: UInt8(ascii: ".")) ?? time.endIndex
        return .time(
            separator: bytes[10], decimals: time[point...].dropFirst().prefix(while: isDigit).count,
            hasZone: time.last == UInt8(ascii: "Z"))
    }

    // MARK: Values

    /// Whether equal texts are equal values in columns of this type, so that the app's text stays where the server sends the same.
    static func isKept(asTextIn type: ColumnType) -> Bool {
        switch type {
        case .text, .decimal, .uuid, .timestamp, .date, .json: true
        // Text in such a column is the bytes themselves, or a number that is too large for JSON.
        case .bytes, .integer, .real, .boolean, .unknown: false
        }
    }

    /// A value of the server as the app spells it.
    ///
    /// A value that has no such spelling, such as a decimal that no real number holds exactly, is as near to it as it can be.
    package func value(of canonical: Canonical) -> SQLValue {
        switch canonical {
        case .null: .null
        case .boolean(let value): .integer(value ? 1 : 0)
        case .integer(let number): type == .real ? .real(Double(number)) : .integer(number)
        case .real(let number): .real(number)
        case .string(let text): value(ofText: text)
        case .document(let json): form == .blob ? .blob(json) : .text(json)
        }
    }

    private func value(ofText text: [UInt8]) -> SQLValue {
        if type == .bytes {
            var bytes: [UInt8] = []
            guard Base64.decode(text.span, into: &bytes) else { return .text(text) }
            return form == .text ? .text(bytes) : .blob(bytes)
        }
        // An integer that JSON's numbers do not hold exactly comes as text.
        if type == .integer, let number = Int64(String(decoding: text, as: UTF8.self)) { return .integer(number) }
        switch form {
        case .uuidBlob:
            return UUIDText.bytes(of: text).map { .blob($0) } ?? .text(text)
        case .uuidInUpperCase:
            return .text(UUIDText.upperCase(text))
        case .number:
            let string = String(decoding: text, as: UTF8.self)
            // A text that another device has written may only look like a number: 007 is another one than 7.
            if let number = Int64(string), type == .decimal || "\(number)" == string { return .integer(number) }
            guard type == .decimal, let number = Double(string) else { return .text(text) }
            // 12.00 is 12 for SQLite's numeric columns as well.
            return Int64(exactly: number).map { .integer($0) } ?? .real(number)
        case .time(let separator, let decimals, let hasZone):
            return .text(Self.time(text, separator, decimals, hasZone))
        case .seconds(let isReal):
            guard let time = UTCTime(canonical: text) else { return .text(text) }
            return isReal
                ? .real(Double(time.seconds) + Double(time.microseconds) / 1_000_000) : .integer(time.seconds)
        case .day(let suffix): return .text(text + suffix)
        case .canonical, .text, .blob: return .text(text)
        }
    }

    /// The canonical form has six decimals and a Z; those that are not 0 are kept.
    private static func time(_ text: [UInt8], _ separator: UInt8, _ decimals: Int, _ hasZone: Bool) -> [UInt8] {
        guard text.count == 27 else { return text }
        let needed = text[20..<26].lastIndex { $0 != UInt8(ascii: "0") }.map { $0 - 19 } ?? 0
        let count = max(needed, decimals)
        var time = Array(text[..<19])
        time[10] = separator
        if count > 0 {
            time += text[19..<(20 + min(count, 6))]
            time += Array(repeating: UInt8(ascii: "0"), count: max(0, count - 6))
        }
        return hasZone ? time + [UInt8(ascii: "Z")] : time
    }
}

extension ValueSpelling.Canonical {
    /// Reads a value of a column of this type.
    init(_ reader: inout JSONReader, type: ColumnType) throws {
        if type == .json {
            // JSON's null is NULL: a column that is not set has no other.
            self =
                try reader.kind() == .null ? (try reader.null() ? .null : .null) : .document(Array(try reader.text()))
            return
        }
        switch try reader.kind() {
        case .null: self = try reader.null() ? .null : .null
        case .boolean: self = .boolean(try reader.boolean())
        case .string: self = .string(try reader.stringBytes())
        case .number:
            let text = try reader.numberText()
            if let integer = JSONReader.integer(text) {
                self = .integer(integer)
            } else if let real = Double(String(decoding: text, as: UTF8.self)) {
                self = .real(real)
            } else {
                throw reader.malformed("a number")
            }
        case .object, .array: throw reader.malformed("a value of the column's type")
        }
    }
}
