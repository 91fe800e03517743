/// A value of log metadata.
package enum LogValue: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case number(Double)
    case boolean(Bool)
    /// A time span, written as a number of seconds.
    case duration(Duration)

    /// Any integer; beyond 64 signed bits as text, so that no line is ever wrong.
    package static func integer(_ value: some BinaryInteger) -> LogValue {
        Int64(exactly: value).map { .integer($0) } ?? .string(String(value))
    }

    /// Whatever describes itself, an id or an address.
    package static func text(_ value: some CustomStringConvertible) -> LogValue {
        .string(value.description)
    }
}

extension LogValue: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral
{
    /// Text.
    package init(stringLiteral value: String) { self = .string(value) }

    /// An integer.
    package init(integerLiteral value: Int64) { self = .integer(value) }

    /// A boolean.
    package init(booleanLiteral value: Bool) { self = .boolean(value) }

    /// A number.
    package init(floatLiteral value: Double) { self = .number(value) }
}

/// Keys and values of a log line, in the order in which they were set.
package struct LogMetadata: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// A key and its value.
    package struct Entry: Sendable, Hashable {
        /// The key.
        package let key: LogKey

        /// The value.
        package let value: LogValue
    }

    /// Every entry; no key twice.
    package private(set) var entries: [Entry] = []

    /// No entries.
    package init() {}

    /// `[.topic: "uploads", .partition: 3]`; of a key given twice the later value counts.
    package init(dictionaryLiteral elements: (LogKey, LogValue)...) {
        for (key, value) in elements { self[key] = value }
    }

    /// The value of a key; `nil` removes it.
    package subscript(key: LogKey) -> LogValue? {
        get { entries.first { $0.key == key }?.value }
        set {
            // A line has a handful of keys: a search is cheaper than a table.
            let place = entries.firstIndex { $0.key == key }
            switch (place, newValue) {
            case (let place?, let value?): entries[place] = Entry(key: key, value: value)
            case (let place?, nil): entries.remove(at: place)
            case (nil, let value?): entries.append(Entry(key: key, value: value))
            case (nil, nil): break
            }
        }
    }

    /// These entries and the other's, whose values count where both have a key.
    package func merging(_ other: LogMetadata) -> LogMetadata {
        var result = self
        for entry in other.entries { result[entry.key] = entry.value }
        return result
    }
}
