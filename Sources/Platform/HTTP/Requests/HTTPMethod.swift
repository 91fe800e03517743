package enum HTTPMethod: Sendable, Equatable, CustomStringConvertible {
    case get
    case head
    case post
    case put
    case patch
    case delete
    case options
    /// Any other method, as sent (methods are case-sensitive).
    case other(String)

    /// `nil` if the bytes are not a token (RFC 9110, 5.6.2).
    package init?(_ bytes: UnsafeBufferPointer<UInt8>) {
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

    // By bytes, because tokens are ASCII.
    package static func == (left: HTTPMethod, right: HTTPMethod) -> Bool {
        left.description.utf8.elementsEqual(right.description.utf8)
    }
}

/// The characters of a token (RFC 9110, 5.6.2).
enum HTTPToken {
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

    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
}
