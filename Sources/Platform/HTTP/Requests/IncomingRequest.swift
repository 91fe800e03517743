import CMicrohttpd

/// The state of the request that a connection is receiving.
struct IncomingRequest {
    var targetLength = 0
    /// Whether the headers have arrived.
    var hasBegun = false
    var request: HTTPRequest?
    var body: BodyReceiver?
    /// Whether the handler reads the body while it arrives.
    var isStreamed = false
    /// Who sends the body, where the handler knows.
    var caller: BodyBudget.Holder?
    /// A response that was decided before the request has arrived completely.
    var earlyResponse: HTTPResponse?
    /// Whether the rest of the body is discarded.
    var discardsBody = false
    /// The reservation of the response in `ServerCore.responseBudget`.
    var reservation: ResponseReservation?
}

/// How the end of a request's body is determined (RFC 9112, 6).
struct BodyFraming {
    var isChunked = false
    /// The Content-Length.
    var declared: Int?
    var isGzip = false

    var hasBody: Bool { isChunked || (declared ?? 0) > 0 }

    /// Refuses ambiguous framing.
    init(_ headers: HTTPHeaders, version: HTTPVersion) throws(RefusedRequest) {
        // A proxy may read `Content-Length : 53` as the length, so what follows could be the body or another request (RFC 9112,
        // 5.1).
        guard headers.namesAreTokens else { throw RefusedRequest(.malformed, "a header's name must be a token") }
        let encodings = headers.all("transfer-encoding")
        let lengths = headers.all("content-length")
        if let encoding = encodings.first {
            isChunked = true
            guard encodings.count == 1, encoding.equalsIgnoringCase("chunked"), version == .http11, lengths.isEmpty
            else {
                throw RefusedRequest(
                    .malformed,
                    "the Transfer-Encoding must be chunked, and is allowed in HTTP/1.1 without Content-Length only")
            }
        } else if let length = lengths.first {
            guard lengths.allSatisfy({ $0 == length }), !length.isEmpty,
                length.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") })
            else {
                throw RefusedRequest(.malformed, "the Content-Length must be a single number")
            }
            declared = Int(String(decoding: length, as: UTF8.self)) ?? Int.max
        }
        guard hasBody else { return }
        switch headers.all("content-encoding").filter({ !$0.equalsIgnoringCase("identity") }) {
        case let codings where codings.isEmpty: break
        case let codings where codings.count == 1:
            isGzip = codings[0].equalsIgnoringCase("gzip") || codings[0].equalsIgnoringCase("x-gzip")
            if !isGzip { throw RefusedRequest(.unsupportedEncoding, "the only supported Content-Encoding is gzip") }
        default: throw RefusedRequest(.unsupportedEncoding, "the only supported Content-Encoding is gzip, applied once")
        }
    }
}

struct RefusedRequest: Error {
    let refusal: HTTPRefusal

    init(_ reason: HTTPRefusalReason, _ detail: String) {
        refusal = HTTPRefusal(reason: reason, detail: detail)
    }

    /// Of a body whose handler gets the bytes as they are.
    static var encodedStream: RefusedRequest {
        RefusedRequest(
            HTTPRefusal(
                reason: .unsupportedEncoding, detail: "this resource takes bodies without Content-Encoding",
                encoding: "identity"))
    }

    private init(_ refusal: HTTPRefusal) { self.refusal = refusal }

    init(_ fault: BodyReceiver.Fault) {
        switch fault {
        case .tooLarge: self.init(.bodyTooLarge, "the body is larger than the limit")
        case .overloaded: self.init(.overloaded, "the request bodies in flight have reached their limit, try again")
        case .malformed: self.init(.malformed, "the body is not valid gzip")
        }
    }
}

extension HTTPHeaders {
    /// Copies the headers that libmicrohttpd has parsed.
    init(of connection: OpaquePointer, byteCount: Int) {
        self.init(byteCount: byteCount)
        withUnsafeMutablePointer(to: &self) { headers in
            // The pointer is used during the call only.
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

    /// Copies and decodes the query that libmicrohttpd has split; `nil` if it is malformed.
    static func all(of connection: OpaquePointer) -> [HTTPQueryItem]? {
        var reader = Reader()
        withUnsafeMutablePointer(to: &reader) { reader in
            // The pointer is used during the call only.
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
    init(text: UnsafePointer<CChar>?, count: Int) {
        self.init(start: UnsafeRawPointer(text)?.assumingMemoryBound(to: UInt8.self), count: text == nil ? 0 : count)
    }
}
