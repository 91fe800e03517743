import CMicrohttpd

/// Encodes the responses that are written to the socket without libmicrohttpd.
enum RawResponse {
    /// Status line, headers and body, with `Connection: close`.
    ///
    /// - Parameter fields: headers beside those of the response.
    static func bytes(of response: HTTPResponse, _ fields: [HTTPField]) -> [UInt8] {
        var bytes: [UInt8] = []
        let body: [UInt8] = if case .bytes(let body) = response.content { body } else { [] }
        let reason = MHD_get_reason_phrase_for(UInt32(clamping: response.status)).map { String(cString: $0) } ?? ""
        bytes.append(contentsOf: "HTTP/1.1 \(response.status) \(reason)\r\n".utf8)
        for field in response.headers + fields where isValid(field) {
            bytes.append(contentsOf: "\(field.name): \(field.value)\r\n".utf8)
        }
        bytes.append(contentsOf: "Content-Length: \(body.count)\r\nConnection: close\r\n\r\n".utf8)
        bytes.append(contentsOf: body)
        return bytes
    }

    /// Whether a header has no line break or NUL.
    private static func isValid(_ field: HTTPField) -> Bool {
        !field.name.isEmpty && field.name.utf8.allSatisfy(HTTPToken.contains)
            && !field.value.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
    }
}
