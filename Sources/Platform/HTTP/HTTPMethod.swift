/// What a request asks for: GET, POST or any other method.
package enum HTTPMethod: Sendable, Equatable, CustomStringConvertible {
    /// GET.
    case get
    /// HEAD: like GET, without the body.
    case head
    /// POST.
    case post
    /// PUT.
    case put
    /// PATCH.
    case patch
    /// DELETE.
    case delete
    /// OPTIONS.
    case options
    /// Any other method, as it was sent (methods are case-sensitive).
    case other(String)

    /// Reads a method; `nil` when it is no token (RFC 9110, 5.6.2).
    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard !bytes.isEmpty, bytes.allSatisfy(HTTPToken.contains) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        switch text {
        case "GET": self = .get
        case "HEAD": self = .head
        case "POST": self = .post
        case "PUT": self = .put
        case "PATCH": self = .patch
        case "DELETE": self = .delete
        case "OPTIONS": self = .options
        default: self = .other(text)
        }
    }

    /// The method as it stands in the request line.
    package var description: String {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .patch: "PATCH"
        case .delete: "DELETE"
        case .options: "OPTIONS"
        case .other(let name): name
        }
    }

    /// Equal when every byte is; tokens are ASCII.
    package static func == (left: HTTPMethod, right: HTTPMethod) -> Bool {
        left.description.utf8.elementsEqual(right.description.utf8)
    }
}

/// The characters of a token (RFC 9110, 5.6.2).
enum HTTPToken {
    /// Whether a byte may stand in a token.
    static func contains(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// The lower-case form of an ASCII letter; other bytes as they are.
    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
}
