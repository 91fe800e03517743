import Configuration
import Digest
import ZeroMQ

/// The secret of a cluster, from which the key pairs of gateways and fan-outs are derived.
package struct LinkKey: Sendable, CustomStringConvertible, CustomReflectable {
    private let bytes: [UInt8]

    /// Parses 64 hexadecimal characters; `nil` for anything else.
    package init?(_ text: Secret) {
        let digits = Array(text.reveal().utf8)
        guard digits.count == 64 else { return nil }
        var bytes: [UInt8] = []
        for pair in stride(from: 0, to: 64, by: 2) {
            guard let high = Self.value(digits[pair]), let low = Self.value(digits[pair + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        self.bytes = bytes
    }

    package var description: String { Secret.mask }

    /// Empty, so that dumps do not show the secret.
    package var customMirror: Mirror { Mirror(self, children: []) }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// The key pair of every fan-out.
    func server() throws(ZeroMQError) -> CurveKeys { try keys(of: "fan-out") }

    /// The key pair of every gateway.
    func client() throws(ZeroMQError) -> CurveKeys { try keys(of: "gateway") }

    private func keys(of side: String) throws(ZeroMQError) -> CurveKeys {
        try CurveKeys(secret: SHA256.digest(of: Array("weir link 1 \(side) ".utf8) + bytes))
    }
}

/// Why the link cannot run, as text for an operator.
package enum LinkProblem: Error, Sendable, CustomStringConvertible {
    /// The address is not loopback, and no key is configured.
    case unprotected(NetworkAddress)
    /// The system or libzmq failed.
    case system(String)

    package var description: String {
        switch self {
        case .unprotected(let address):
            "\(address) is not a loopback address, and link.key-file is not set: create a key with "
                + "`openssl rand -hex 32`, copy it to every gateway and fan-out, and set link.key-file to its path"
        case .system(let text): text
        }
    }
}

extension NetworkAddress {
    /// Whether traffic to the address never leaves this machine.
    var isLoopback: Bool {
        let parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isIPv4 = parts.count == 4 && parts.allSatisfy { UInt8(Substring($0)) != nil }
        return host == "localhost" || host == "::1" || isIPv4 && UInt8(Substring(parts[0])) == 127
    }

    /// The address in libzmq's form; `localhost` means 127.0.0.1, since a server must listen at one of IPv4 and IPv6.
    var endpoint: String {
        host == "localhost" ? "tcp://127.0.0.1:\(port)" : "tcp://\(self)"
    }

    var isIPv6: Bool { host.utf8.contains(UInt8(ascii: ":")) }

    /// Rejects an address that is not loopback when there is no key to encrypt with.
    func checkProtection(_ key: LinkKey?) throws(LinkProblem) {
        if key == nil, !isLoopback { throw .unprotected(self) }
    }
}
