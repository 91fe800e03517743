/// A host and a port: `127.0.0.1:8080`, `[::1]:8080`, `kafka.internal:9092`.
package struct NetworkAddress: Sendable, Hashable, CustomStringConvertible {
    /// A name, an IPv4 address or an IPv6 address without its brackets.
    package let host: String
    /// 0 lets the system choose the port to listen on.
    package let port: UInt16

    /// Returns `nil` where the host is empty or has characters that no host has.
    package init?(host: String, port: UInt16) {
        let isFit = host.utf8.allSatisfy {
            ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9"))
                || ($0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z")) || "-._:%".utf8.contains($0)
        }
        guard isFit, (1...255).contains(host.utf8.count) else { return nil }
        self.host = host
        self.port = port
    }

    /// Parses `host:port`; an IPv6 address is in brackets.
    package init?(_ text: String) {
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        let digits = text.utf8[text.utf8.index(after: colon)...]
        guard (1...5).contains(digits.count), digits.first != UInt8(ascii: "+"), let port = UInt16(Substring(digits))
        else { return nil }
        let host = text.utf8[..<colon]
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") {
            let inside = host.dropFirst().dropLast()
            guard inside.contains(UInt8(ascii: ":")) else { return nil }
            self.init(host: String(Substring(inside)), port: port)
        } else {
            guard !host.contains(UInt8(ascii: ":")) else { return nil }
            self.init(host: String(Substring(host)), port: port)
        }
    }

    /// `host:port`, brackets around IPv6.
    package var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

extension ConfigurationType where Value == NetworkAddress {
    package static var address: ConfigurationType {
        ConfigurationType(
            placeholder: "HOST:PORT", expected: "a host and a port from 0 to 65535, as host:port or [IPv6]:port",
            parse: { text in text.one.flatMap { NetworkAddress($0) } },
            render: { $0.description })
    }
}
