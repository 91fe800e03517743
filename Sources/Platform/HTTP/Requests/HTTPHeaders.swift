/// The headers of a request; names are case-insensitive.
///
/// Names and values share one array of bytes, because most requests use only a few of them.
package struct HTTPHeaders: Sendable {
    private struct Entry {
        var nameStart: UInt32
        var valueStart: UInt32
        var end: UInt32
    }

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []
    /// Whether every name is a token, as HTTP requires (RFC 9110, 5.1).
    private(set) var namesAreTokens = true

    /// - Parameter byteCount: the expected bytes of all names and values.
    init(byteCount: Int = 0) {
        bytes.reserveCapacity(byteCount)
        entries.reserveCapacity(16)
    }

    /// Appends a header, without the white space around the value (RFC 9110, 5.5).
    mutating func append(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        let nameStart = bytes.count
        if name.isEmpty { namesAreTokens = false }
        for byte in name {
            if !HTTPToken.contains(byte) { namesAreTokens = false }
            bytes.append(HTTPToken.lowercased(byte))
        }
        let valueStart = bytes.count
        bytes.append(contentsOf: value.trimmingWhiteSpace())
        entries.append(
            Entry(nameStart: UInt32(nameStart), valueStart: UInt32(valueStart), end: UInt32(bytes.count)))
    }

    /// The number of headers; a repeated one counts each time.
    package var count: Int { entries.count }

    /// The name, in lower case, and the value at a position, in the order sent.
    package subscript(position: Int) -> (name: String, value: ArraySlice<UInt8>) {
        let entry = entries[position]
        let name = bytes[Int(entry.nameStart)..<Int(entry.valueStart)]
        return (String(decoding: name, as: UTF8.self), value(of: entry))
    }

    /// The first header with the name.
    package func bytes(of name: String) -> ArraySlice<UInt8>? {
        entries.first { matches($0, name) }.map { value(of: $0) }
    }

    /// The first header with the name; `nil` if there is none or it is not UTF-8.
    package func text(of name: String) -> String? {
        bytes(of: name).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// All headers with the name, in the order sent.
    package func all(_ name: String) -> [ArraySlice<UInt8>] {
        entries.lazy.filter { matches($0, name) }.map { value(of: $0) }
    }

    private func value(of entry: Entry) -> ArraySlice<UInt8> {
        bytes[Int(entry.valueStart)..<Int(entry.end)]
    }

    private func matches(_ entry: Entry, _ name: String) -> Bool {
        let stored = Int(entry.nameStart)..<Int(entry.valueStart)
        let name = name.utf8
        guard stored.count == name.count else { return false }
        return zip(stored, name).allSatisfy { bytes[$0] == HTTPToken.lowercased($1) }
    }
}

extension Collection where Element == UInt8, Self: BidirectionalCollection {
    /// Without spaces and tabs at both ends.
    func trimmingWhiteSpace() -> SubSequence {
        func isWhiteSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        guard let first = firstIndex(where: { !isWhiteSpace($0) }), let last = lastIndex(where: { !isWhiteSpace($0) })
        else { return self[endIndex..<endIndex] }
        return self[first...last]
    }

    func equalsIgnoringCase(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { text in
            count == text.count && zip(self, text).allSatisfy { HTTPToken.lowercased($0) == HTTPToken.lowercased($1) }
        }
    }
}
