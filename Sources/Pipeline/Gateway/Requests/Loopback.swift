/// Names of this machine for itself.
///
/// Nothing is copied, since every request may be checked.
enum Loopback {
    /// Whether a host is on loopback: an address of 127.0.0.0/8, `::1`, or the name `localhost`.
    static func contains(_ host: String) -> Bool { contains(ArraySlice(host.utf8)) }

    /// Whether the header `Host` names loopback, with or without a port; also by a name below `localhost` (RFC 6761, 6.3).
    static func isNamed(by header: ArraySlice<UInt8>) -> Bool {
        let closing = header.first == UInt8(ascii: "[") ? header.firstIndex(of: UInt8(ascii: "]")) : nil
        let end = closing.map { $0 + 1 } ?? header.firstIndex(of: UInt8(ascii: ":")) ?? header.endIndex
        let port = header[end...]
        guard port.isEmpty || (port.first == UInt8(ascii: ":") && port.dropFirst().allSatisfy(isDigit)) else {
            return false
        }
        var name = header[..<end]
        if closing != nil { return name.dropFirst().dropLast().elementsEqual("::1".utf8) }
        // The root may be written: `localhost.`.
        if name.last == UInt8(ascii: ".") { name.removeLast() }
        return contains(name) || isEqual(name.suffix(".localhost".utf8.count), ".localhost")
    }

    private static func contains(_ host: ArraySlice<UInt8>) -> Bool {
        isAddress(host) || isEqual(host, "localhost") || host.elementsEqual("::1".utf8)
    }

    /// Whether it is an address of 127.0.0.0/8, in four decimal parts.
    private static func isAddress(_ host: ArraySlice<UInt8>) -> Bool {
        var (part, value, digits) = (0, 0, 0)
        for byte in host {
            if byte == UInt8(ascii: ".") {
                guard digits > 0, part > 0 || value == 127 else { return false }
                (part, value, digits) = (part + 1, 0, 0)
            } else {
                guard isDigit(byte), digits < 3 else { return false }
                (value, digits) = (value * 10 + Int(byte & 0xF), digits + 1)
                guard value <= 255 else { return false }
            }
        }
        return part == 3 && digits > 0
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// Whether it is a name, of lowercase letters and dots, in any case.
    private static func isEqual(_ host: ArraySlice<UInt8>, _ name: String) -> Bool {
        host.elementsEqual(name.utf8) { byte, expected in
            byte == expected || (byte ^ expected == 0x20 && (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(expected))
        }
    }
}
