/// One decoded `name=value` of a query; `value` is empty if there is no `=`.
package struct HTTPQueryItem: Sendable {
    /// Percent-decoded, with `+` as a space.
    package let name: String
    package let value: String
}

/// Parses request targets.
enum HTTPTarget {
    /// The path in a target without its query: the target itself, or what follows the authority in the absolute form
    /// that proxies send (RFC 9112, 3.2.2); `nil` if it is neither.
    static func path(of target: UnsafeBufferPointer<UInt8>) -> Slice<UnsafeBufferPointer<UInt8>>? {
        if target.first == UInt8(ascii: "/") || (target.count == 1 && target[0] == UInt8(ascii: "*")) {
            return target[...]
        }
        for scheme in ["http://", "https://"] as [StaticString] where target.count > scheme.utf8CodeUnitCount {
            guard target.prefix(scheme.utf8CodeUnitCount).equalsIgnoringCase(scheme) else { continue }
            let rest = target.dropFirst(scheme.utf8CodeUnitCount)
            return rest.firstIndex(of: UInt8(ascii: "/")).map { target[$0...] }
        }
        return nil
    }

    /// Splits a path at `/` and decodes each segment; a trailing slash makes an empty last one, `/` and `*` have none.
    ///
    /// `nil` if a segment is malformed.
    static func segments(of path: Slice<UnsafeBufferPointer<UInt8>>) -> [String]? {
        guard path.first == UInt8(ascii: "/"), path.count > 1 else { return [] }
        var segments: [String] = []
        var rest = path.dropFirst()
        while true {
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            guard let segment = decode(rest[..<end]) else { return nil }
            segments.append(segment)
            if end == rest.endIndex { return segments }
            rest = rest[rest.index(after: end)...]
        }
    }

    /// Percent-decodes; `nil` for a malformed escape, control characters and invalid UTF-8.
    static func decode(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String? {
        guard bytes.contains(where: { $0 == UInt8(ascii: "%") || $0 < 0x20 || $0 == 0x7F }) else {
            return String(validating: bytes, as: UTF8.self)
        }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var position = bytes.startIndex
        while position < bytes.endIndex {
            var byte = bytes[position]
            // A raw control character in the request line comes from a faulty or malicious client.
            guard byte >= 0x20, byte != 0x7F else { return nil }
            position += 1
            if byte == UInt8(ascii: "%") {
                guard position + 1 < bytes.endIndex, let high = hexadecimal(bytes[position]),
                    let low = hexadecimal(bytes[position + 1])
                else { return nil }
                byte = high << 4 | low
                position += 2
                guard byte != 0 else { return nil }
            }
            decoded.append(byte)
        }
        return String(validating: decoded, as: UTF8.self)
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
