import SyncModel
import Testing

/// A value as in a request.
enum Spelling: Sendable, CustomTestStringConvertible {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    /// Minified.
    case json(String)

    var testDescription: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .number(let text): text
        case .string(let text): "\"\(text)\""
        case .json(let text): text
        }
    }

    /// The column's result.
    func canonical(
        _ column: Column, maximumBytes: Int = 1 << 20
    ) throws(ValueRefusal) -> (json: String, isAltered: Bool) {
        let form = CanonicalForm(column, maximumBytes: maximumBytes)
        // Existing files are not changed.
        var bytes = Array("[".utf8)
        let isAltered: Bool
        switch self {
        case .null: isAltered = try form.appendNull(to: &bytes)
        case .bool(let value): isAltered = try form.append(value, to: &bytes)
        case .number(let text): isAltered = try form.append(number: Array(text.utf8).span, to: &bytes)
        case .string(let text): isAltered = try form.append(string: Array(text.utf8).span, to: &bytes)
        case .json(let text): isAltered = try form.append(minified: Array(text.utf8).span, to: &bytes)
        }
        #expect(bytes[0] == UInt8(ascii: "["))
        return (String(decoding: bytes.dropFirst(), as: UTF8.self), isAltered)
    }

    /// Whether a column refuses it as invalid.
    func isInvalid(_ column: Column) -> Bool {
        do throws(ValueRefusal) {
            _ = try canonical(column)
            return false
        } catch {
            guard case .invalid(let message) = error else { return false }
            return message.utf8.starts(with: column.name.utf8)
        }
    }
}

/// A value, its canonical JSON, and whether it counts as altered.
struct Form: Sendable, CustomTestStringConvertible {
    let type: ColumnType
    let spelling: Spelling
    let json: String
    let isAltered: Bool

    init(_ type: ColumnType, _ spelling: Spelling, _ json: String, isAltered: Bool = false) {
        self.type = type
        self.spelling = spelling
        self.json = json
        self.isAltered = isAltered
    }

    var testDescription: String { "\(type.name) \(spelling.testDescription)" }

    func check() throws {
        let (json, isAltered) = try spelling.canonical(Column(name: "c", type: type))
        #expect(json.utf8.elementsEqual(self.json.utf8), "\(json)")
        #expect(isAltered == self.isAltered)
    }
}
