import DeviceRegistry
import HTTP
import JSON
import JSONText
import SyncModel

/// Which devices `GET /v1/devices` asks for.
struct DevicePageQuery: Sendable {
    /// Devices of a page if the request has no `limit`.
    private static let defaultLimit = 100
    /// A larger `limit` is reduced to this.
    private static let maximumLimit = 1000

    /// The device after which the page begins.
    let after: KnowledgeID?
    let limit: Int

    init(_ request: HTTPRequest) throws(Problem) {
        func value(_ name: String) throws(Problem) -> String? {
            let named = request.query.filter { $0.name.utf8.elementsEqual(name.utf8) }
            guard named.count <= 1 else { throw Problem(.invalidRequest, "\(name) must be given once") }
            return named.first?.value
        }
        if let text = try value("after") { after = try KnowledgeID(named: text) } else { after = nil }
        guard let text = try value("limit") else {
            limit = Self.defaultLimit
            return
        }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text), number >= 1 else {
            throw Problem(.invalidRequest, "limit must be an integer of at least 1")
        }
        limit = min(number, Self.maximumLimit)
    }
}

extension KnowledgeID {
    /// A device that a path or a query names.
    init(named text: String) throws(Problem) {
        guard let id = KnowledgeID(text), id != .everyOther else {
            throw Problem(.invalidRequest, "a knowledgeId has 1 to 255 bytes without NUL, and is not *")
        }
        self = id
    }
}

/// The body of `PATCH /v1/devices/{knowledgeId}`.
struct DeviceName: Sendable {
    /// `nil` takes the given name back.
    let name: String?

    init(_ root: borrowing JSONValue) throws(Problem) {
        guard root.kind == .object, root.repeatedMember == nil, let name = root.member(named: "name") else {
            throw Problem(.invalidRequest, "the body must be an object that has name, once")
        }
        self.name = try Envelope.label(name, "name")
    }
}

/// Devices of a caller as the client contract shows them.
struct DevicePage {
    private let caller: SyncID
    private let devices: [KnowledgeID: RegisteredDevice]
    private let ids: [KnowledgeID]
    private let revoked: Set<KnowledgeID>
    private let head: TimeStamp?
    private let hasMore: Bool

    /// - Parameters:
    ///   - found: in the order of their ids, one more than the page may have if there are more.
    ///   - revoked: all that the caller has revoked; they are listed although the registry has never seen them, or has forgotten
    ///     them.
    ///   - head: the newest timeStamp of the caller; `nil` while its stream cannot be read.
    init(
        of caller: SyncID, found: [RegisteredDevice], revoked: Set<KnowledgeID>, head: TimeStamp?,
        _ query: DevicePageQuery? = nil
    ) {
        self.caller = caller
        self.revoked = revoked
        self.head = head
        let known = Dictionary(found.map { ($0.knowledgeID, $0) }, uniquingKeysWith: { first, _ in first })
        let limit = query?.limit ?? .max
        let end = found.count > limit ? found[limit].knowledgeID : nil
        let unknown = revoked.filter { id in
            known[id] == nil && (query?.after.map { $0 < id } ?? true) && (end.map { id < $0 } ?? true)
        }
        let all = (found.prefix(limit).map(\.knowledgeID) + unknown).sorted()
        ids = Array(all.prefix(limit))
        hasMore = end != nil || all.count > limit
        devices = known
    }

    var json: [UInt8] {
        var writer = JSONWriter(capacity: 512 * (ids.count + 1))
        writer.object { writer in
            if let head { writer.member("head", head.rawValue) }
            writer.name("devices")
            writer.array { writer in
                for id in ids { write(id, to: &writer) }
            }
            writer.member("hasMore", hasMore)
        }
        return writer.take()
    }

    func json(of id: KnowledgeID) -> [UInt8] {
        var writer = JSONWriter(capacity: 512)
        write(id, to: &writer)
        return writer.take()
    }

    private func write(_ id: KnowledgeID, to writer: inout JSONWriter) {
        let device = devices[id]
        writer.object { writer in
            writer.member("knowledgeId", id.text)
            let members: [(StaticString, String?)] = [
                ("name", device?.name), ("platform", device?.description.platform),
                ("appVersion", device?.description.appVersion),
                ("firstSeen", device.map { Self.text(of: $0.firstSeen) }),
                ("lastSeen", device.map { Self.text(of: $0.lastSeen) }),
                ("lastUpload", device?.lastUpload.map(Self.text)),
            ]
            for (name, value) in members {
                if let value { writer.member(name, value) }
            }
            writer.name("knowledge")
            writer.array { writer in
                for (owner, timeStamp) in (device?.knowledge ?? [:]).sorted(by: { $0.key < $1.key }) {
                    writer.object { writer in
                        writer.member("syncId", owner.text)
                        writer.member("knowledgeId", KnowledgeID.everyOther.text)
                        writer.member("lastTimeStamp", timeStamp.rawValue)
                    }
                }
            }
            if let head, let held = device?.knowledge[caller] {
                writer.member("lag", max(0, head.rawValue - held.rawValue))
            }
            writer.member("revoked", revoked.contains(id))
        }
    }

    /// A time from microseconds since 1970.
    private static func text(of microseconds: Int64) -> String {
        var bytes: [UInt8] = []
        CanonicalTimestamp.append(microseconds, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
