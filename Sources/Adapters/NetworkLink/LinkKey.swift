import Configuration
import Digest
import ZeroMQ

/// The secret of a cluster, from which both ends have their keys.
package struct LinkKey: Sendable, CustomStringConvertible, CustomReflectable {
    private let bytes: [UInt8]

    /// Reads 64 hexadecimal characters; `nil` for anything else.
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

    /// `***`.
    package var description: String { Secret.mask }

    /// Nothing to look into.
    package var customMirror: Mirror { Mirror(self, children: []) }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// What fan-outs prove themselves with.
    func server() throws(ZeroMQError) -> CurveKeys { try keys(of: "fan-out") }

    /// What gateways prove themselves with.
    func client() throws(ZeroMQError) -> CurveKeys { try keys(of: "gateway") }

    private func keys(of end: String) throws(ZeroMQError) -> CurveKeys {
        try CurveKeys(secret: SHA256.digest(of: Array("weir link 1 \(end) ".utf8) + bytes))
    }
}

/// Why an end of the link cannot work, in words for an operator.
package enum LinkProblem: Error, Sendable, CustomStringConvertible {
    /// The address is beyond this machine, and there is no key.
    case unprotected(NetworkAddress)
    /// The system or libzmq refuses.
    case system(String)

    /// What is wrong, and what to do.
    package var description: String {
        switch self {
        case .unprotected(let address):
            "\(address) is not on this machine, and the link has no key: make one with `openssl rand -hex 32`, put it "
                + "into a file on every gateway and fan-out, and name the file with link.key-file"
        case .system(let words): words
        }
    }
}

extension NetworkAddress {
    /// Whether the address never leaves this machine.
    var isLoopback: Bool {
        let parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isIPv4 = parts.count == 4 && parts.allSatisfy { UInt8(Substring($0)) != nil }
        return host == "localhost" || host == "::1" || isIPv4 && UInt8(Substring(parts[0])) == 127
    }

    /// The address as libzmq takes it.
    ///
    /// `localhost` is the IPv4 one: whoever listens must say which.
    var endpoint: String {
        host == "localhost" ? "tcp://127.0.0.1:\(port)" : "tcp://\(self)"
    }

    var isIPv6: Bool { host.utf8.contains(UInt8(ascii: ":")) }

    /// Refuses an address beyond this machine where nothing would be encrypted.
    func checkProtection(_ key: LinkKey?) throws(LinkProblem) {
        if key == nil, !isLoopback { throw .unprotected(self) }
    }
}
