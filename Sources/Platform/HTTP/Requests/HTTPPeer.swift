import CMicrohttpd
import Glibc

/// The address of a client, or the one a server is bound to.
package struct HTTPPeer: Sendable, Hashable, CustomStringConvertible {
    /// The 16 bytes of an IPv6 address; an IPv4 address is mapped, ::ffff:a.b.c.d.
    private let high: UInt64
    private let low: UInt64

    package let port: UInt16

    /// `nil` if the address is neither IPv4 nor IPv6.
    init?(_ storage: borrowing sockaddr_storage) {
        var copy = copy storage
        switch Int32(copy.ss_family) {
        case AF_INET:
            let address = withUnsafeBytes(of: &copy) { $0.load(as: sockaddr_in.self) }
            high = 0
            low = 0xFFFF_0000_0000 | UInt64(UInt32(bigEndian: address.sin_addr.s_addr))
            port = UInt16(bigEndian: address.sin_port)
        case AF_INET6:
            let address = withUnsafeBytes(of: &copy) { $0.load(as: sockaddr_in6.self) }
            (high, low) = withUnsafeBytes(of: address.sin6_addr) {
                (
                    UInt64(bigEndian: $0.load(as: UInt64.self)),
                    UInt64(bigEndian: $0.load(fromByteOffset: 8, as: UInt64.self))
                )
            }
            port = UInt16(bigEndian: address.sin6_port)
        default: return nil
        }
    }

    private var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// The client for limits: an IPv4 address, or an IPv6 /64 network, since a client usually owns a whole one.
    var client: Client {
        isIPv4 ? Client(network: low) : Client(network: high)
    }

    /// Mapped IPv4 addresses (0xFFFF in the upper half) do not collide with an IPv6 network in use.
    struct Client: Hashable {
        let network: UInt64
    }

    /// The address without the port: `192.0.2.1` or `2001:db8::1`.
    package var address: String {
        if isIPv4 {
            return (0..<4).map { String(low >> (24 - 8 * UInt64($0)) & 0xFF) }.joined(separator: ".")
        }
        var bytes = (high.bigEndian, low.bigEndian)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
            guard inet_ntop(AF_INET6, &bytes, text.baseAddress, socklen_t(text.count)) != nil else { return "?" }
            return String(cString: text.baseAddress!)
        }
    }

    /// `192.0.2.1:80` or `[2001:db8::1]:80`.
    package var description: String {
        isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
    }
}
