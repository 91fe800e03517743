import HTTP
import SyncModel

/// Who is calling, and which owners' data it may read or write.
package struct Caller: Sendable, Hashable {
    /// The caller's own syncId.
    package let syncID: SyncID
    /// Its rights: its own first, then those towards linked owners in the order stated, each owner once.
    package let grants: [Grant]
    /// How long from now on the proof of who it is holds, where it ends: event streams end with it.
    package let validFor: Duration?

    /// Makes a caller that may write its own data, and what the links say; of links to one owner the first counts.
    package init(syncID: SyncID, links: [Grant] = [], validFor: Duration? = nil) {
        self.syncID = syncID
        self.validFor = validFor
        var grants = [Grant(owner: syncID, access: .write)]
        if !links.isEmpty {
            var seen: Set<SyncID> = [syncID]
            grants += links.filter { seen.insert($0.owner).inserted }
        }
        self.grants = grants
    }

    /// Whether an owner's data may be read.
    package func mayRead(_ owner: SyncID) -> Bool { grants.contains { $0.owner == owner } }
}

/// Finds out who is calling; called by the server's own threads, so it must not wait.
package protocol Authenticator: Sendable {
    /// Whether it takes the caller's word for who it is: then the gateway listens to this machine only.
    var trustsEverybody: Bool { get }

    /// The caller of a request.
    ///
    /// A problem that is ``ProblemCode/unauthenticated`` carries the header `WWW-Authenticate` (RFC 9110, 11.6.1).
    func caller(of request: HTTPRequest) throws(Problem) -> Caller
}

/// Believes the headers `X-Sync-Id` and `X-Sync-Links: abc:write,xyz:read`: for development, on loopback only.
///
/// Ids are percent-encoded where needed (`,`, `:`, `%`, and what headers cannot hold). Headers that cannot be read make the
/// caller ``ProblemCode/unauthenticated``, as a broken token does.
package struct NoAuthentication: Authenticator {
    /// At most so many links; each costs a look at the owner's stream with every pull.
    package static let maximumLinks = 1000

    /// Makes the authenticator.
    package init() {}

    /// True: it does.
    package var trustsEverybody: Bool { true }

    /// The caller that the headers name.
    package func caller(of request: HTTPRequest) throws(Problem) -> Caller {
        let named = request.headers.all("x-sync-id")
        guard named.count == 1 else {
            throw Self.unauthenticated("the header X-Sync-Id names the caller's syncId, once")
        }
        guard let syncID = Self.id(named[0]) else {
            throw Self.unauthenticated("X-Sync-Id is no syncId: 1 to 255 bytes of UTF-8 without NUL, percent-encoded")
        }
        var links: [Grant] = []
        for header in request.headers.all("x-sync-links") {
            for link in header.split(separator: UInt8(ascii: ",")) { links.append(try Self.link(link)) }
        }
        guard links.count <= Self.maximumLinks else {
            throw Self.unauthenticated("X-Sync-Links names \(links.count) owners, at most \(Self.maximumLinks)")
        }
        return Caller(syncID: syncID, links: links)
    }

    private static func link(_ text: ArraySlice<UInt8>) throws(Problem) -> Grant {
        let parts = trimmed(text).split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 2, let owner = id(parts[0]),
            let access = [Access.read, .write].first(where: { $0.rawValue.utf8.elementsEqual(parts[1]) })
        else {
            throw unauthenticated("X-Sync-Links is a list of syncId:read or syncId:write")
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
    /// The bytes that a text stands for; `nil` when an escape is broken.
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
