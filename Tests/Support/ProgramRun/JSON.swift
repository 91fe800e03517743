import Foundation

/// A JSON value in a test: readable by keys and positions, comparable, printable.
// Unchecked: what JSONSerialization makes is never changed.
package struct JSON: @unchecked Sendable, Equatable, CustomStringConvertible, ExpressibleByDictionaryLiteral,
    ExpressibleByArrayLiteral, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByNilLiteral, ExpressibleByFloatLiteral
{
    package let value: Any

    package init(_ value: Any) { self.value = value }

    package init(dictionaryLiteral elements: (String, JSON)...) {
        value = Dictionary(uniqueKeysWithValues: elements.map { ($0, $1.value) })
    }

    package init(arrayLiteral elements: JSON...) { value = elements.map(\.value) }
    package init(stringLiteral string: String) { value = string }
    package init(integerLiteral number: Int) { value = number }
    package init(floatLiteral number: Double) { value = number }
    package init(booleanLiteral flag: Bool) { value = flag }
    package init(nilLiteral: ()) { value = NSNull() }

    package subscript(key: String) -> JSON { JSON((value as? [String: Any])?[key] ?? NSNull()) }
    package subscript(index: Int) -> JSON { JSON((value as? [Any])?[index] ?? NSNull()) }

    package var array: [JSON] { ((value as? [Any]) ?? []).map(JSON.init) }
    package var object: [String: JSON] { ((value as? [String: Any]) ?? [:]).mapValues(JSON.init) }
    package var string: String? { value as? String }
    package var int: Int? { (value as? NSNumber)?.intValue }
    package var bool: Bool? { (value as? NSNumber)?.boolValue }
    package var isNull: Bool { value is NSNull }

    /// A copy with a member set.
    package func with(_ key: String, _ member: JSON) -> JSON {
        var object = (value as? [String: Any]) ?? [:]
        object[key] = member.value
        return JSON(object)
    }

    package static func == (left: JSON, right: JSON) -> Bool { left.description == right.description }

    /// Canonical text: keys sorted.
    package var description: String {
        guard let data = try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed])
        else { return "\(value)" }
        return String(decoding: data, as: UTF8.self)
    }
}

extension [JSON] {
    /// The values as a set: payloads and vectors have no order.
    package var sortedByText: [JSON] { sorted { $0.description < $1.description } }
}
