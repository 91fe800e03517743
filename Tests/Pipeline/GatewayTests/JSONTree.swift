import JSON
import TestSignals

/// A JSON value with its members in order.
indirect enum JSONTree: Sendable {
    case object([(name: String, value: JSONTree)])
    case array([JSONTree])
    case string(String)
    case number(Int64)
    case bool(Bool)
    case other

    /// Parses a document.
    init(_ bytes: [UInt8]) throws {
        var parser = JSONParser()
        self = try parser.withDocument(bytes.span) { Self($0.root) }
    }

    private init(_ value: borrowing JSONValue) {
        if var members = value.members {
            var object: [(name: String, value: JSONTree)] = []
            while let member = members.next() { object.append((Self.text(member.name), JSONTree(member.value))) }
            self = .object(object)
        } else if var elements = value.elements {
            var array: [JSONTree] = []
            while let element = elements.next() { array.append(JSONTree(element)) }
            self = .array(array)
        } else if let text = value.string {
            self = .string(Self.text(text))
        } else if let number = value.int64 {
            self = .number(number)
        } else if let bool = value.bool {
            self = .bool(bool)
        } else {
            self = .other
        }
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// The value of a member.
    subscript(name: String) -> JSONTree? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    /// The value at a path of members.
    func at(_ path: String...) -> JSONTree? { path.reduce(self as JSONTree?) { $0?[$1] } }

    var names: [String] {
        if case .object(let members) = self { members.map(\.name) } else { [] }
    }

    var members: [(name: String, value: JSONTree)] {
        if case .object(let members) = self { members } else { [] }
    }

    var elements: [JSONTree] {
        if case .array(let elements) = self { elements } else { [] }
    }

    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var number: Int64? {
        if case .number(let number) = self { number } else { nil }
    }

    var bool: Bool? {
        if case .bool(let bool) = self { bool } else { nil }
    }

    /// Every object within, itself included.
    var objects: [JSONTree] {
        switch self {
        case .object(let members): [self] + members.flatMap(\.value.objects)
        case .array(let elements): elements.flatMap(\.objects)
        default: []
        }
    }
}
