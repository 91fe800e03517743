package enum LogValue: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case number(Double)
    case boolean(Bool)
    /// Written as a number of seconds.
    case duration(Duration)

    /// Any integer; as text if it does not fit 64 signed bits.
    package static func integer(_ value: some BinaryInteger) -> LogValue {
        Int64(exactly: value).map { .integer($0) } ?? .string(String(value))
    }

    package static func text(_ value: some CustomStringConvertible) -> LogValue {
        .string(value.description)
    }
}

extension LogValue: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }

    package init(integerLiteral value: Int64) { self = .integer(value) }

    package init(booleanLiteral value: Bool) { self = .boolean(value) }

    package init(floatLiteral value: Double) { self = .number(value) }
}

/// Keys and values of a log line, in insertion order.
package struct LogMetadata: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    package struct Entry: Sendable, Hashable {
        package let key: LogKey
        package let value: LogValue
    }

    /// Without repeated keys.
    package private(set) var entries: [Entry] = []

    package init() {}

    /// For a repeated key, the last value counts.
    package init(dictionaryLiteral elements: (LogKey, LogValue)...) {
        for (key, value) in elements { self[key] = value }
    }

    /// Setting `nil` removes the key.
    package subscript(key: LogKey) -> LogValue? {
        get { entries.first { $0.key == key }?.value }
        set {
            // Linear search: a line has few keys.
            let index = entries.firstIndex { $0.key == key }
            switch (index, newValue) {
            case (let index?, let value?): entries[index] = Entry(key: key, value: value)
            case (let index?, nil): entries.remove(at: index)
            case (nil, let value?): entries.append(Entry(key: key, value: value))
            case (nil, nil): break
            }
        }
    }

    /// For keys in both, the other's values count.
    package func merging(_ other: LogMetadata) -> LogMetadata {
        var result = self
        for entry in other.entries { result[entry.key] = entry.value }
        return result
    }
}
