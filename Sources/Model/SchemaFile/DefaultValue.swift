import JSONText
import SyncModel
import YAML

/// Converts a column's default to canonical form, as values of rows are.
struct DefaultValue {
    let maximumBytes: Int

    /// The default's canonical JSON; `nil`, with a problem recorded, when the column cannot have it.
    func canonical(_ node: YAMLNode, for column: Column, _ problems: inout [SchemaFileError.Problem]) -> [UInt8]? {
        do throws(ValueRefusal) {
            var bytes: [UInt8] = []
            try append(node, column, to: &bytes)
            return bytes
        } catch {
            let reason =
                switch error {
                case .invalid(let reason): reason
                case .tooLarge(let maximum): "\(column.name) takes at most \(maximum) bytes"
                }
            problems.append(.init(position: node.position, message: "this default is not valid: \(reason)"))
            return nil
        }
    }

    private func append(_ node: YAMLNode, _ column: Column, to bytes: inout [UInt8]) throws(ValueRefusal) {
        let form = CanonicalForm(column, maximumBytes: maximumBytes)
        if column.type == .json {
            var json: [UInt8] = []
            try appendJSON(node, to: &json, depth: 1)
            _ = try form.append(minified: json.span, to: &bytes)
            return
        }
        guard let scalar = node.scalar else {
            throw .invalid("\(column.name) must be a single value, found \(node.kind)")
        }
        let text = Array(scalar.text.utf8)
        switch scalar.tag {
        case .null: _ = try form.appendNull(to: &bytes)
        case .boolean where column.type == .boolean: _ = try form.append(scalar.boolean == true, to: &bytes)
        case .integer where column.type == .integer || column.type == .real, .float where column.type == .real:
            guard Self.isJSONNumber(text) else { throw .invalid("write the number in decimal digits") }
            _ = try form.append(number: text.span, to: &bytes)
        default: _ = try form.append(string: text.span, to: &bytes)
        }
    }

    private func appendJSON(_ node: YAMLNode, to bytes: inout [UInt8], depth: Int) throws(ValueRefusal) {
        guard depth <= CanonicalForm.maximumDepth else { throw .invalid("it is nested too deeply") }
        switch node.content {
        case .sequence(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                try appendJSON(element, to: &bytes, depth: depth + 1)
            }
            bytes.append(UInt8(ascii: "]"))
        case .mapping(let mapping):
            bytes.append(UInt8(ascii: "{"))
            for (index, entry) in mapping.entries.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                bytes.appendJSONString(Array(entry.key.text.utf8).span)
                bytes.append(UInt8(ascii: ":"))
                try appendJSON(entry.value, to: &bytes, depth: depth + 1)
            }
            bytes.append(UInt8(ascii: "}"))
        case .scalar(let scalar):
            let text = Array(scalar.text.utf8)
            switch scalar.tag {
            case .null: bytes.append(contentsOf: "null".utf8)
            case .boolean: bytes.append(contentsOf: (scalar.boolean == true ? "true" : "false").utf8)
            case .integer, .float:
                guard Self.isJSONNumber(text) else { throw .invalid("write numbers in decimal digits") }
                bytes += text
            case .string:
                guard !text.contains(0) else { throw .invalid("it holds NUL") }
                bytes.appendJSONString(text.span)
            }
        }
    }

    /// Whether a YAML number is also a JSON number: no plus, no leading zeros, no bare point, no other base.
    private static func isJSONNumber(_ text: [UInt8]) -> Bool {
        var rest = text[...]
        if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
        let whole = rest.prefix { $0.isDigit }
        guard !whole.isEmpty, whole.count == 1 || whole.first != UInt8(ascii: "0") else { return false }
        rest = rest.dropFirst(whole.count)
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { $0.isDigit }
            guard !digits.isEmpty else { return false }
            rest = rest.dropFirst(digits.count + 1)
        }
        if let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
            guard !rest.isEmpty, rest.allSatisfy(\.isDigit) else { return false }
            return true
        }
        return rest.isEmpty
    }
}
