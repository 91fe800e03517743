import JSON
import Seeded

/// JSON as the tests understand it, apart from the code under test: strings as scalars, numbers as spelled.
indirect enum JSONModel: Equatable {
    case null
    case bool(Bool)
    case number(String)
    case string([Unicode.Scalar])
    case array([JSONModel])
    case object([Member])

    struct Member: Equatable {
        let name: [Unicode.Scalar]
        let value: JSONModel
    }

    static func random(depth: Int, using random: inout SeededRandom) -> JSONModel {
        switch Int.random(in: 0..<(depth > 0 ? 9 : 6), using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2, 3: return .number(randomNumber(using: &random))
        case 4, 5: return .string(randomText(using: &random))
        case 6:
            return .array(
                (0..<Int.random(in: 0..<6, using: &random)).map { _ in .random(depth: depth - 1, using: &random) })
        default:
            return .object(
                (0..<Int.random(in: 0..<6, using: &random)).map { index in
                    // The index keeps the names apart.
                    let name = randomText(using: &random) + Array(String(index).unicodeScalars)
                    return Member(name: name, value: .random(depth: depth - 1, using: &random))
                })
        }
    }

    mutating func append(_ value: JSONModel) {
        guard case .array(let values) = self else { return }
        self = .array(values + [value])
    }

    private static func randomNumber(using random: inout SeededRandom) -> String {
        var text = Bool.random(using: &random) ? "-" : ""
        if Bool.random(using: &random) {
            text += "0"
        } else {
            text += String(Int.random(in: 1...9, using: &random))
            text += digits(0...18, using: &random)
        }
        if Bool.random(using: &random) { text += "." + digits(1...20, using: &random) }
        if Int.random(in: 0..<4, using: &random) == 0 {
            text += ["e", "E"].randomElement(using: &random)! + ["", "+", "-"].randomElement(using: &random)!
            text += digits(1...2, using: &random)
        }
        return text
    }

    private static func digits(_ count: ClosedRange<Int>, using random: inout SeededRandom) -> String {
        var text = ""
        for _ in 0..<Int.random(in: count, using: &random) { text += String(Int.random(in: 0...9, using: &random)) }
        return text
    }

    private static func randomText(using random: inout SeededRandom) -> [Unicode.Scalar] {
        let interesting: [Unicode.Scalar] = [
            "\"", "\\", "/", "\u{8}", "\n", "\u{1F}", "\u{7F}", "\0", "é", "😀", "{", ",",
        ]
        return (0..<Int.random(in: 0..<40, using: &random)).map { _ in
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1: return interesting.randomElement(using: &random)!
            case 2: return Unicode.Scalar(UInt32.random(in: 0x80..<0xD800, using: &random))!
            case 3: return Unicode.Scalar(UInt32.random(in: 0xE000...0x10FFFF, using: &random))!
            default: return Unicode.Scalar(UInt8.random(in: 0x20..<0x7F, using: &random))
            }
        }
    }

    /// Writes the value, with random white space and random choices of escapes when `spaces` is set; without it in the
    /// one minimal spelling.
    func write(into bytes: inout [UInt8], spaces: Bool, using random: inout SeededRandom) {
        func space(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
            guard spaces, Int.random(in: 0..<3, using: &random) == 0 else { return }
            for _ in 0..<Int.random(in: 1..<5, using: &random) {
                bytes.append(([0x20, 0x0A, 0x0D, 0x09] as [UInt8]).randomElement(using: &random)!)
            }
        }
        space(&bytes, &random)
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let bool): bytes += "\(bool)".utf8
        case .number(let text): bytes += text.utf8
        case .string(let text): Self.write(text, into: &bytes, variously: spaces, using: &random)
        case .array(let values):
            bytes += "[".utf8
            for (index, value) in values.enumerated() {
                if index > 0 { bytes += ",".utf8 }
                value.write(into: &bytes, spaces: spaces, using: &random)
            }
            space(&bytes, &random)
            bytes += "]".utf8
        case .object(let members):
            bytes += "{".utf8
            for (index, member) in members.enumerated() {
                if index > 0 { bytes += ",".utf8 }
                space(&bytes, &random)
                Self.write(member.name, into: &bytes, variously: spaces, using: &random)
                space(&bytes, &random)
                bytes += ":".utf8
                member.value.write(into: &bytes, spaces: spaces, using: &random)
            }
            space(&bytes, &random)
            bytes += "}".utf8
        }
        space(&bytes, &random)
    }

    private static func write(
        _ text: [Unicode.Scalar], into bytes: inout [UInt8], variously: Bool, using random: inout SeededRandom
    ) {
        let short: [Unicode.Scalar: String] = [
            "\"": "\\\"", "\\": "\\\\", "\u{8}": "\\b", "\u{C}": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
        ]
        bytes += "\"".utf8
        for scalar in text {
            if variously && Int.random(in: 0..<5, using: &random) == 0 {
                for unit in String(scalar).utf16 {
                    let hexadecimal = String(unit, radix: 16, uppercase: Bool.random(using: &random))
                    bytes += ("\\u" + String(repeating: "0", count: 4 - hexadecimal.count) + hexadecimal).utf8
                }
            } else if variously && scalar == "/" {
                bytes += "\\/".utf8
            } else if let escape = short[scalar] {
                bytes += escape.utf8
            } else if scalar.value < 0x20 {
                bytes += ("\\u00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16)).utf8
            } else {
                bytes += String(scalar).utf8
            }
        }
        bytes += "\"".utf8
    }

    /// Reads a parsed value by its public accessors.
    init(_ value: borrowing JSONValue) {
        switch value.kind {
        case .null: self = .null
        case .boolean: self = .bool(value.bool!)
        case .number: self = .number(Self.text(value.numberText!))
        case .string: self = .string(Array(Self.text(value.string!).unicodeScalars))
        case .array:
            var values: [JSONModel] = []
            var elements = value.elements!
            while let element = elements.next() { values.append(JSONModel(element)) }
            self = .array(values)
        case .object:
            var read: [Member] = []
            var members = value.members!
            while let member = members.next() {
                read.append(
                    Member(name: Array(Self.text(member.name).unicodeScalars), value: JSONModel(member.value)))
            }
            self = .object(read)
        }
    }

    static func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}
