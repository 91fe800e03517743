import CCurl

/// A URL that may be downloaded: `https`, or `http` on loopback.
package struct DownloadURL: Sendable, Hashable, CustomStringConvertible {
    package let text: String
    /// Whether the host is loopback, over plain HTTP.
    let isPlain: Bool

    /// - Returns: `nil` for other schemes, a name or password in it, a fragment, and `http` to other hosts than loopback.
    package init?(_ text: String) {
        guard let url = curl_url() else { return nil }
        defer { curl_url_cleanup(url) }
        // Without CURLU_NON_SUPPORT_SCHEME and CURLU_GUESS_SCHEME: an absolute URL of a known scheme.
        guard text.utf8.count <= 2048, curl_url_set(url, CURLUPART_URL, text, UInt32(CURLU_DISALLOW_USER)) == CURLUE_OK,
            let scheme = Self.part(CURLUPART_SCHEME, of: url), let host = Self.part(CURLUPART_HOST, of: url),
            Self.part(CURLUPART_FRAGMENT, of: url) == nil
        else { return nil }
        switch scheme.lowercased() {
        case "https": isPlain = false
        case "http" where Self.isLoopback(host): isPlain = true
        default: return nil
        }
        self.text = text
    }

    package var description: String { text }

    private static func part(_ part: CURLUPart, of url: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(url, part, &text, 0) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }

    private static func isLoopback(_ host: String) -> Bool {
        let host = host.lowercased()
        if ["localhost", "[::1]"].contains(where: { $0.utf8.elementsEqual(host.utf8) }) { return true }
        let parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0].elementsEqual("127".utf8)
            && parts.allSatisfy { (1...3).contains($0.count) && UInt8(Substring($0)) != nil }
    }
}
