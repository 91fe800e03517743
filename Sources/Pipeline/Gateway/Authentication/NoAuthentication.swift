import HTTP
import SyncModel

/// Trusts the headers `X-Sync-Id` and `X-Sync-Links: abc:write,xyz:read`; for development, on loopback only.
///
/// Ids are percent-encoded where needed (`,`, `:`, `%`, and bytes that headers cannot hold). Malformed headers are
/// answered with ``ProblemCode/unauthenticated``, as an invalid token would be.
package struct NoAuthentication: Authenticator {
    /// Each link costs a lookup of the owner's head with every pull.
    package static let maximumLinks = 1000

    package init() {}

    package var trustsEveryCaller: Bool { true }

    package func caller(of request: HTTPRequest) throws(Problem) -> CallerLookup {
        let named = request.headers.all("x-sync-id")
        guard named.count == 1 else {
            throw Self.unauthenticated("the header X-Sync-Id must name the caller's syncId, exactly once")
        }
        guard let syncID = Self.id(named[0]) else {
            throw Self.unauthenticated(
                "X-Sync-Id is no syncId: it must be 1 to 255 bytes of UTF-8 without NUL, percent-encoded")
        }
        var links: [Grant] = []
        for header in request.headers.all("x-sync-links") {
            for link in header.split(separator: UInt8(ascii: ",")) { links.append(try Self.link(link)) }
        }
        guard links.count <= Self.maximumLinks else {
            throw Self.unauthenticated(
                "X-Sync-Links names \(links.count) owners, at most \(Self.maximumLinks) are allowed")
        }
        return .known(Caller(syncID: syncID, links: links))
    }

    private static func link(_ text: ArraySlice<UInt8>) throws(Problem) -> Grant {
        let parts = trimmed(text).split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 2, let owner = id(parts[0]),
            let access = [Access.read, .write].first(where: { $0.rawValue.utf8.elementsEqual(parts[1]) })
        else {
            throw unauthenticated("X-Sync-Links must be a list of syncId:read or syncId:write")
        }
        return Grant(owner: owner, access: access)
    }

    private static func unauthenticated(_ detail: String) -> Problem {
        var problem = Problem(.unauthenticated, detail)
        problem.headers = [HTTPField("WWW-Authenticate", "X-Sync-Id")]
        return problem
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        let start = text.drop(while: isSpace)
        guard let last = start.lastIndex(where: { !isSpace($0) }) else { return [] }
        return start[...last]
    }

    private static func id(_ text: ArraySlice<UInt8>) -> SyncID? {
        PercentEncoding.decode(text).flatMap { SyncID(utf8: $0) }
    }
}

/// Percent-encoding of ids in headers (RFC 3986).
enum PercentEncoding {
    /// `nil` if an escape is malformed.
    static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
