import SyncModel

/// Why one change of a batch is refused.
package struct ChangeRefusal: Error, Sendable, Hashable {
    package let code: RefusalCode
    /// For a developer: names fields and limits, never values.
    package let message: String

    package init(_ code: RefusalCode, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The change is not an object, or a field besides the values is wrong.
    static func invalidChange(_ message: String) -> ChangeRefusal { ChangeRefusal(.invalidChange, message) }

    /// A value that its column does not accept.
    init(_ refusal: ValueRefusal, column: Column) {
        switch refusal {
        case .invalid(let message): self.init(.invalidValue, message)
        case .tooLarge(let maximum):
            self.init(.valueTooLarge, "\(column.name) takes at most \(maximum) bytes of JSON")
        }
    }

    /// A name from a request, in quotes, for a message: at most 64 bytes, control characters escaped.
    static func quoted(_ name: Span<UInt8>) -> String {
        let maximum = 64
        var end = min(name.count, maximum)
        if end < name.count {
            // Do not cut within a scalar.
            while end > 0, name[end] & 0xC0 == 0x80 { end -= 1 }
        }
        let text = name.extracting(first: end).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        let escaped = text.unicodeScalars.map { $0.escaped(asASCII: false) }.joined()
        return "\"\(escaped)\(end < name.count ? "…" : "")\""
    }
}
