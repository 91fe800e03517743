/// A value as it was written, before it has a type.
package enum ConfigurationText: Sendable {
    /// A variable, a flag or a scalar of the file.
    case one(String)

    /// A sequence of the file.
    case many([String])

    package var one: String? {
        if case .one(let text) = self { text } else { nil }
    }
}

/// The type of a key's values: how they are parsed, written and described.
///
/// The usual types are static members (`.integer(in:)`, `.duration(in:)`, …); components define their own with `init`.
package struct ConfigurationType<Value: Sendable>: Sendable {
    /// What represents the value in help: `SIZE`.
    package let placeholder: String
    /// What is allowed, to follow "expected" in a message: "an integer from 1 to 10".
    package let expected: String
    /// Returns `nil` where the text is not allowed.
    package let parse: @Sendable (ConfigurationText) -> Value?
    /// Writes a value so that `parse` reads it.
    package let render: @Sendable (Value) -> String
    /// Whether a flag without a value means `true`.
    let isBoolean: Bool
    /// Whether values are never shown and may be in a file of their own.
    let isSecret: Bool
    /// Whether a text that is refused is not shown either, since it may hold a secret by mistake.
    private(set) var hidesRefused = false

    /// `parse(.one(render(value)))` must return the value.
    ///
    /// - Parameter hidesRefused: whether messages do not quote a text that is refused, since it may hold a secret.
    package init(
        placeholder: String, expected: String, hidesRefused: Bool = false,
        parse: @escaping @Sendable (ConfigurationText) -> Value?, render: @escaping @Sendable (Value) -> String
    ) {
        self.init(
            placeholder: placeholder, expected: expected, isBoolean: false, isSecret: false, parse: parse,
            render: render)
        self.hidesRefused = hidesRefused
    }

    init(
        placeholder: String, expected: String, isBoolean: Bool, isSecret: Bool,
        parse: @escaping @Sendable (ConfigurationText) -> Value?, render: @escaping @Sendable (Value) -> String
    ) {
        self.placeholder = placeholder
        self.expected = expected
        self.isBoolean = isBoolean
        self.isSecret = isSecret
        self.parse = parse
        self.render = render
    }
}

extension ConfigurationType where Value == String {
    /// One line of text; `lengths` in bytes.
    package static func string(lengths: ClosedRange<Int> = 1...1024) -> ConfigurationType {
        ConfigurationType(
            placeholder: "TEXT", expected: "one line of \(lengths.lowerBound) to \(lengths.upperBound) bytes of text",
            parse: { text in text.one.flatMap { $0.isOneLine && lengths.contains($0.utf8.count) ? $0 : nil } },
            render: { $0 })
    }

    /// A path of the file system; relative ones start at the working directory.
    package static var path: ConfigurationType {
        ConfigurationType(
            placeholder: "PATH", expected: "a path",
            parse: { text in text.one.flatMap { $0.isOneLine && !$0.isEmpty ? $0 : nil } },
            render: { $0 })
    }
}

extension ConfigurationType where Value == [String] {
    /// Texts without commas, none of them empty: a sequence in the file, separated by commas elsewhere.
    package static func list(counts: ClosedRange<Int> = 0...1000) -> ConfigurationType {
        ConfigurationType(
            placeholder: "A,B,…",
            expected: "a list of \(counts.lowerBound) to \(counts.upperBound) texts, separated by commas",
            parse: { text in
                let elements: [String] =
                    switch text {
                    case .many(let elements): elements
                    case .one(let text):
                        text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: text.isEmpty)
                            .map { $0.trimmingSpaces() }
                    }
                let isFit = elements.allSatisfy {
                    !$0.isEmpty && $0.isOneLine && !$0.utf8.contains(UInt8(ascii: ","))
                }
                return isFit && counts.contains(elements.count) ? elements : nil
            },
            render: { $0.joined(separator: ",") })
    }
}

extension ConfigurationType where Value == Int {
    package static func integer(in range: ClosedRange<Int>) -> ConfigurationType {
        ConfigurationType(
            placeholder: "NUMBER", expected: "an integer from \(range.lowerBound) to \(range.upperBound)",
            parse: { text in text.one.flatMap { Int($0) }.flatMap { range.contains($0) ? $0 : nil } },
            render: { String($0) })
    }
}

extension ConfigurationType where Value == Bool {
    /// `true` or `false`; the flag alone means `true`.
    package static var boolean: ConfigurationType {
        ConfigurationType(
            placeholder: "true|false", expected: "true or false", isBoolean: true, isSecret: false,
            parse: { text in
                guard let text = text.one else { return nil }
                if text.utf8.elementsEqual("true".utf8) { return true }
                return text.utf8.elementsEqual("false".utf8) ? false : nil
            },
            render: { String($0) })
    }
}

extension ConfigurationType where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// One of the cases of an enum, by its raw value.
    package static func choice(_ type: Value.Type = Value.self) -> ConfigurationType {
        let names = type.allCases.map(\.rawValue)
        return ConfigurationType(
            placeholder: names.joined(separator: "|"), expected: "one of " + names.joined(separator: ", "),
            parse: { text in
                guard let text = text.one else { return nil }
                return type.allCases.first { $0.rawValue.utf8.elementsEqual(text.utf8) }
            },
            render: { $0.rawValue })
    }
}

extension String {
    /// Whether this holds no control characters, so that it can be shown and passed on to C as it is.
    var isOneLine: Bool {
        utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}

extension Substring.UTF8View {
    fileprivate func trimmingSpaces() -> String {
        let space = UInt8(ascii: " ")
        let head = drop { $0 == space }
        let tail = head.reversed().prefix { $0 == space }.count
        return String(Substring(head.dropLast(tail)))
    }
}
