import JSON
import SyncModel
import WebTokens

/// Which claims of a token say who is calling and what the caller may do.
package struct ClaimNames: Sendable {
    /// The caller's syncId, a string; required.
    package var syncID = "sub"
    /// The only knowledgeId that the token may be used with, a string; empty: no claim is looked at.
    package var device = "did"
    /// Linked owners, an object `{"abc": "write"}` or an array of strings `"abc:write"`; empty: no claim is looked at.
    package var links = "links"
    /// What the token allows, a string of words or an array of words; empty: no claim is looked at.
    package var scope = "scope"
    /// The word in the scope that allows pulls and event streams.
    package var readScope = "read"
    /// The word in the scope that allows uploads.
    package var writeScope = "write"
    /// The word in the scope with which credentials for one device may name and revoke others.
    package var devicesScope = "devices"

    package init() {}

    /// More words than any scope has.
    private static let maximumWords = 1000

    /// The caller of a token whose claims are true.
    package func caller(in root: borrowing JSONValue) throws(TokenRefusal) -> Caller {
        guard var members = root.members else { throw TokenRefusal(.claims, "the claims are no object") }
        var caller: SyncID?
        var device: KnowledgeID?
        var grants: [Grant] = []
        var scope: AccessScope?
        while let member = members.next() {
            let name = String(copying: member.name)
            // One claim may have several meanings.
            if Self.same(name, syncID) { caller = try Self.id(member.value, name) }
            if Self.same(name, self.device) { device = try Self.id(member.value, name) }
            if Self.same(name, links) { grants = try Self.grants(member.value, name) }
            if Self.same(name, self.scope) { scope = try self.scope(member.value, name) }
        }
        guard let caller else { throw TokenRefusal(.claims, "it has no \(syncID), which names the syncId") }
        // Credentials for one device allow no more than it needs, unless they say so.
        return Caller(
            syncID: caller, links: grants, device: device,
            scope: scope ?? (device == nil ? .all : [.read, .write]))
    }

    private static func same(_ name: String, _ other: String) -> Bool { name.utf8.elementsEqual(other.utf8) }

    private static func id<ID: OpaqueID>(
        _ value: borrowing JSONValue, _ name: String
    ) throws(TokenRefusal) -> ID {
        guard let text = value.string, let id = ID(utf8: Array(copying: text)[...]) else {
            throw TokenRefusal(.claims, "\(name) is no string of 1 to 255 bytes without NUL")
        }
        return id
    }

    private static func grants(_ value: borrowing JSONValue, _ name: String) throws(TokenRefusal) -> [Grant] {
        let form = "\(name) is neither an object {\"syncId\": \"write\"} nor an array of strings \"syncId:write\""
        guard value.count <= NoAuthentication.maximumLinks else {
            throw TokenRefusal(
                .claims, "\(name) names \(value.count) owners, at most \(NoAuthentication.maximumLinks) are allowed")
        }
        var grants: [Grant] = []
        if var members = value.members {
            if value.repeatedMember != nil { throw TokenRefusal(.claims, "\(name) repeats an owner") }
            while let member = members.next() {
                guard let owner = SyncID(utf8: Array(copying: member.name)[...]), let text = member.value.string,
                    let access = Self.access(Array(copying: text)[...])
                else { throw TokenRefusal(.claims, form) }
                grants.append(Grant(owner: owner, access: access))
            }
            return grants
        }
        guard var elements = value.elements else { throw TokenRefusal(.claims, form) }
        while let element = elements.next() {
            guard let text = element.string, case let bytes = Array(copying: text),
                // The last colon: those before it belong to the syncId.
                let colon = bytes.lastIndex(of: UInt8(ascii: ":")), let owner = SyncID(utf8: bytes[..<colon]),
                let access = Self.access(bytes[(colon + 1)...])
            else { throw TokenRefusal(.claims, form) }
            grants.append(Grant(owner: owner, access: access))
        }
        return grants
    }

    private static func access(_ text: ArraySlice<UInt8>) -> Access? {
        Access.allCases.first { $0.rawValue.utf8.elementsEqual(text) }
    }

    private func scope(_ value: borrowing JSONValue, _ name: String) throws(TokenRefusal) -> AccessScope {
        var words: [String] = []
        if let text = value.string {
            words = String(copying: text).split(separator: " ", maxSplits: Self.maximumWords).map(String.init)
        } else if var elements = value.elements, value.count <= Self.maximumWords {
            while let element = elements.next() {
                guard let text = element.string else {
                    throw TokenRefusal(.claims, "\(name) has an element that is no string")
                }
                words.append(String(copying: text))
            }
        } else {
            throw TokenRefusal(
                .claims, "\(name) is neither a string of words nor an array of at most \(Self.maximumWords)")
        }
        var scope: AccessScope = []
        if words.contains(where: { Self.same($0, readScope) }) { scope.insert(.read) }
        if words.contains(where: { Self.same($0, writeScope) }) { scope.insert(.write) }
        if words.contains(where: { Self.same($0, devicesScope) }) { scope.insert(.devices) }
        return scope
    }
}
