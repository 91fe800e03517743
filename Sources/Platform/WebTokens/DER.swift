/// The few structures of DER (X.690) that keys and signatures need.
enum DER {
    /// `rsaEncryption` (1.2.840.113549.1.1.1) without parameters.
    private static let rsaEncryption: [UInt8] = [
        0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00,
    ]
    /// `id-ecPublicKey` (1.2.840.10045.2.1) on `prime256v1` (1.2.840.10045.3.1.7).
    private static let ecPublicKeyOnP256: [UInt8] = [
        0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,
        0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07,
    ]
    /// `id-Ed25519` (1.3.101.112).
    private static let ed25519: [UInt8] = [0x06, 0x03, 0x2B, 0x65, 0x70]

    /// A `SubjectPublicKeyInfo` of an RSA key (RFC 8017, A.1.1).
    static func rsaKey(modulus: [UInt8], exponent: [UInt8]) -> [UInt8] {
        publicKey(rsaEncryption, element(0x30, integer(modulus[...]) + integer(exponent[...])))
    }

    /// A `SubjectPublicKeyInfo` of a point on P-256, uncompressed (RFC 5480).
    static func p256Key(x: [UInt8], y: [UInt8]) -> [UInt8] { publicKey(ecPublicKeyOnP256, [4] + x + y) }

    /// A `SubjectPublicKeyInfo` of an Ed25519 key (RFC 8410).
    static func ed25519Key(_ key: [UInt8]) -> [UInt8] { publicKey(ed25519, key) }

    /// An `ECDSA-Sig-Value` of the two halves of a signature.
    static func signature(_ concatenated: some Collection<UInt8>) -> [UInt8] {
        let half = concatenated.count / 2
        return element(0x30, integer(concatenated.prefix(half)) + integer(concatenated.dropFirst(half)))
    }

    /// The two integers of an `ECDSA-Sig-Value`, each with 32 bytes; `nil` if it is none.
    static func p256Signature(from der: [UInt8]) -> [UInt8]? {
        guard der.count > 8, der[0] == 0x30, Int(der[1]) == der.count - 2 else { return nil }
        var rest = der[2...]
        var signature: [UInt8] = []
        for _ in 0..<2 {
            guard rest.count > 2, rest.removeFirst() == 0x02, case let count = Int(rest.removeFirst()),
                rest.count >= count
            else { return nil }
            let digits = rest.prefix(count).drop { $0 == 0 }
            guard digits.count <= 32 else { return nil }
            signature += Array(repeating: 0, count: 32 - digits.count) + digits
            rest = rest.dropFirst(count)
        }
        return rest.isEmpty ? signature : nil
    }

    private static func publicKey(_ algorithm: [UInt8], _ key: [UInt8]) -> [UInt8] {
        element(0x30, element(0x30, algorithm) + element(0x03, [0] + key))
    }

    /// An unsigned integer of big-endian bytes.
    private static func integer(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let digits = Array(bytes.drop { $0 == 0 })
        let isNegative = digits.first.map { $0 >= 0x80 } ?? true
        return element(0x02, (isNegative ? [0] : []) + digits)
    }

    private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let length: [UInt8] =
            switch count {
            case 0..<0x80: [UInt8(count)]
            case 0x80..<0x100: [0x81, UInt8(count)]
            default: [0x82, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
            }
        return [tag] + length + content
    }
}
