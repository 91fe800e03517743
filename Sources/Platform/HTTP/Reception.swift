import CMicrohttpd

/// What has come of the request under way.
struct Reception {
    /// The length of the target as the request line had it.
    var targetLength = 0
    /// Whether its headers have come.
    var hasBegun = false
    var request: HTTPRequest?
    var body: BodyReceiver?
    /// An answer that stands before the request has come as a whole.
    var verdict: HTTPResponse?
    /// Whether what comes of the body is thrown away.
    var dropsBody = false
    /// What the answer takes of the room for answers.
    var answerBytes = 0
}

/// How the body of a request is told to end (RFC 9112, 6).
struct BodyFraming {
    var isChunked = false
    var declared: Int?
    var isGzip = false

    /// Whether a body follows the headers.
    var hasBody: Bool { isChunked || (declared ?? 0) > 0 }

    /// Reads the framing and refuses what could be read in two ways.
    init(_ headers: HTTPHeaders, version: HTTPVersion) throws(RefusedRequest) {
        let encodings = headers.all("transfer-encoding")
        let lengths = headers.all("content-length")
        if let encoding = encodings.first {
            isChunked = true
            guard encodings.count == 1, encoding.equalsIgnoringCase("chunked"), version == .http11, lengths.isEmpty
            else {
                throw RefusedRequest(
                    .malformed, "the Transfer-Encoding must be chunked, in HTTP/1.1 without Content-Length")
            }
        } else if let length = lengths.first {
            guard lengths.allSatisfy({ $0 == length }), !length.isEmpty,
                length.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") })
            else {
                throw RefusedRequest(.malformed, "the Content-Length is no single number")
            }
            declared = Int(String(decoding: length, as: UTF8.self)) ?? Int.max
        }
        guard hasBody else { return }
        switch headers.all("content-encoding").filter({ !$0.equalsIgnoringCase("identity") }) {
        case let codings where codings.isEmpty: break
        case let codings where codings.count == 1:
            isGzip = codings[0].equalsIgnoringCase("gzip") || codings[0].equalsIgnoringCase("x-gzip")
            if !isGzip { throw RefusedRequest(.unsupportedEncoding, "the only Content-Encoding taken is gzip") }
        default: throw RefusedRequest(.unsupportedEncoding, "the only Content-Encoding taken is gzip, once")
        }
    }
}

/// A request that the server itself refuses.
struct RefusedRequest: Error {
    let refusal: HTTPRefusal

    init(_ reason: HTTPRefusalReason, _ detail: String) {
        refusal = HTTPRefusal(reason: reason, detail: detail)
    }

    init(_ fault: BodyReceiver.Fault) {
        switch fault {
        case .tooLarge: self.init(.bodyTooLarge, "the body is larger than allowed")
        case .overloaded: self.init(.overloaded, "too many request bodies are under way, try again")
        case .malformed: self.init(.malformed, "the body is no valid gzip")
        }
    }
}

extension HTTPHeaders {
    /// Copies the headers of the request that the library has read.
    init(of connection: OpaquePointer, byteCount: Int) {
        self.init(byteCount: byteCount)
        withUnsafeMutablePointer(to: &self) { headers in
            // The pointer is used during the call alone.
            _ = MHD_get_connection_values_n(
                connection, .HEADER_KIND,
                { context, _, name, nameCount, value, valueCount in
                    context!.assumingMemoryBound(to: HTTPHeaders.self).pointee.append(
                        name: UnsafeBufferPointer(text: name, count: nameCount),
                        value: UnsafeBufferPointer(text: value, count: valueCount))
                    return .YES
                }, headers)
        }
    }
}

extension HTTPQueryItem {
    private struct Reader {
        var items: [HTTPQueryItem] = []
        var isValid = true
    }

    /// Copies and decodes the query that the library has split; `nil` when it is wrongly encoded.
    static func all(of connection: OpaquePointer) -> [HTTPQueryItem]? {
        var reader = Reader()
        withUnsafeMutablePointer(to: &reader) { reader in
            // The pointer is used during the call alone.
            _ = MHD_get_connection_values_n(
                connection, .GET_ARGUMENT_KIND,
                { context, _, name, nameCount, value, valueCount in
                    let reader = context!.assumingMemoryBound(to: Reader.self)
                    guard let name = HTTPTarget.decode(UnsafeBufferPointer(text: name, count: nameCount)[...]),
                        let value = HTTPTarget.decode(UnsafeBufferPointer(text: value, count: valueCount)[...])
                    else {
                        reader.pointee.isValid = false
                        return .NO
                    }
                    reader.pointee.items.append(HTTPQueryItem(name: name, value: value))
                    return .YES
                }, reader)
        }
        return reader.isValid ? reader.items : nil
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// The bytes of a text of C.
    init(text: UnsafePointer<CChar>?, count: Int) {
        self.init(start: UnsafeRawPointer(text)?.assumingMemoryBound(to: UInt8.self), count: text == nil ? 0 : count)
    }
}
