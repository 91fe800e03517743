/// A text that must not be shown: printing, logging or dumping it gives `***`.
package struct Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What is shown for every secret.
    package static let mask = "***"

    private let text: String

    package init(_ text: String) {
        self.text = text
    }

    /// The text itself, for the one place that needs it.
    package func reveal() -> String { text }

    package var description: String { Self.mask }
    package var debugDescription: String { Self.mask }
    /// Empty, so that `dump` shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension ConfigurationType where Value == Secret {
    /// A secret of `lengths` bytes, on one line.
    ///
    /// It has a companion key `…-file` that names a file whose first line is the secret. It has no flag, since every user
    /// of the machine can read a command line; the companion has one.
    package static func secret(lengths: ClosedRange<Int> = 1...4096) -> ConfigurationType {
        ConfigurationType(
            placeholder: "SECRET",
            expected: "a secret of \(lengths.lowerBound) to \(lengths.upperBound) bytes on one line",
            isBoolean: false, isSecret: true,
            parse: { text in
                text.one.flatMap { $0.isOneLine && lengths.contains($0.utf8.count) ? Secret($0) : nil }
            },
            render: { _ in Secret.mask })
    }
}
