import JSONText

/// A SHA-256 in the fields `Content-Digest` and `Repr-Digest` (RFC 9530).
enum ContentDigest {
    /// The SHA-256 that a field names, beside other digests; `nil` if it has none.
    static func parse(_ field: String) -> [UInt8]? {
        for member in field.split(separator: ",") {
            let parts = member.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].filter({ $0 != " " && $0 != "\t" }) == "sha-256" else { continue }
            // A byte sequence (RFC 8941, 3.3.5), perhaps with parameters, which mean nothing.
            let value = parts[1].split(separator: ":", omittingEmptySubsequences: false)
            guard value.count >= 3, value[0].isEmpty else { return nil }
            var digest: [UInt8] = []
            guard Base64.decode(Array(value[1].utf8).span, into: &digest), digest.count == 32 else { return nil }
            return digest
        }
        return nil
    }

    static func field(_ digest: [UInt8]) -> String {
        var text: [UInt8] = []
        Base64.encode(digest.span, into: &text)
        return "sha-256=:\(String(decoding: text, as: UTF8.self)):"
    }
}
