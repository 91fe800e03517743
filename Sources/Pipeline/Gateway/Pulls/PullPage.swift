import FanOutLink
import JSONText
import SyncModel

/// The pull of a request: the owners to read from the fan-out, and how their pages are written into the response.
struct PullPage: Sendable {
    /// What the beginning of the response names.
    struct Server: Sendable {
        let epoch: String
        let schemaVersion: String
    }

    /// The most entries of an owner's vector in a response whose request names fewer; a floor replaces more.
    ///
    /// 1000: about 100 KB, and far above the number of devices that most owners have. Every creating device has an entry, and
    /// what a device names is not checked, so nothing else bounds their number.
    static let maximumEntries = 1000

    private let caller: Caller
    private let envelope: Envelope
    private let server: Server
    /// Owners whose entries in the request's vector belong to another epoch.
    private let otherEpoch: Set<SyncID>
    /// The request to the fan-out.
    let request: PagePull

    init(
        caller: Caller, envelope: Envelope, server: Server, held: [SyncID: Set<TimeStamp>],
        leastHeads: [SyncID: TimeStamp], maximumBytes: Int
    ) {
        self.caller = caller
        self.envelope = envelope
        self.server = server
        // With another epoch, all entries of the device's vector belong to that epoch.
        let isOther = envelope.epoch.map { !$0.utf8.elementsEqual(server.epoch.utf8) } ?? false
        let otherEpoch = isOther ? Set(envelope.knowledge.owners.keys) : []
        self.otherEpoch = otherEpoch
        let owners = caller.grants.lazy.map(\.owner).filter { !otherEpoch.contains($0) }
        request = PagePull(
            owners: owners.map {
                OwnerPull(
                    owner: $0, knowledge: envelope.knowledge[$0], held: held[$0] ?? [],
                    leastHead: leastHeads[$0] ?? .zero,
                    maximumEntries: envelope.isCompact ? 0 : Self.maximumEntries)
            },
            limit: envelope.limit, maximumBytes: maximumBytes)
    }

    /// The owners of the request's vector that are not granted.
    private var revoked: [SyncID] {
        let named = envelope.knowledge.owners
        // The common case, in which all are granted, needs no set.
        if caller.grants.count(where: { named[$0.owner] != nil }) == named.count { return [] }
        return Set(named.keys).subtracting(caller.grants.map(\.owner)).sorted()
    }

    /// The owners after the end of a cut page.
    private func unread(_ pages: [OwnerPage]) -> [OwnerPull] {
        if pages.count == request.owners.count { return [] }
        let read = Set(pages.map(\.owner))
        return request.owners.filter { !read.contains($0.owner) }
    }

    /// Whether the pages contain anything new for the device, so that a long poll ends.
    func hasNews(_ pages: [OwnerPage]) -> Bool {
        if !otherEpoch.isEmpty || !revoked.isEmpty { return true }
        return pages.contains { page in
            switch page.content {
            case .historyChanged: true
            case .rows(let rows): rows.count > 0 || rows.hasMore || moved(page.owner, rows)
            }
        }
    }

    /// Writes the fields after `batch`.
    func write(_ pages: [OwnerPage], to writer: inout JSONWriter) {
        let revoked = revoked
        writer.name("changes")
        writer.array { writer in
            for case .rows(let rows) in pages.lazy.map(\.content) where rows.count > 0 { writer.raw(rows.json) }
        }
        writer.name("knowledge")
        writer.array { writer in
            for page in pages {
                if case .rows(let rows) = page.content { writeKnowledge(page.owner, rows, to: &writer) }
            }
            // For owners after the page's end the device's vector does not change.
            for pull in unread(pages) { writeKnowledge(pull.owner, Self.asSent(pull.knowledge), to: &writer) }
        }
        writer.member("hasMore", hasMore(pages))
        writer.name("revoked")
        writer.array { writer in
            for owner in revoked { writer.value(owner.text) }
        }
        writer.name("resync")
        writer.array { writer in
            for grant in caller.grants where otherEpoch.contains(grant.owner) { writer.resync(grant.owner) }
            for page in pages where page.content == .historyChanged { writer.resync(page.owner) }
        }
        writeCutFrom(pages, to: &writer)
    }

    /// Writes the heads that this page and the ones before it were cut from; the device returns them with its next
    /// pull.
    ///
    /// An owner that has no rows in this page keeps the head that was named before, or gets that of the outcomes in the
    /// answer: the device has their results, and must not be sent older rows next.
    private func writeCutFrom(_ pages: [OwnerPage], to writer: inout JSONWriter) {
        guard hasMore(pages) else { return }
        var heads: [(owner: SyncID, head: TimeStamp)] = []
        let pulls = Dictionary(request.owners.lazy.map { ($0.owner, $0) }, uniquingKeysWith: { first, _ in first })
        for page in pages {
            if case .rows(let rows) = page.content,
                let head = rows.cutFrom(known: pulls[page.owner].flatMap(Self.headOfUnsentRows))
            {
                heads.append((page.owner, head))
            }
        }
        for pull in unread(pages) {
            if let head = Self.headOfUnsentRows(pull) { heads.append((pull.owner, head)) }
        }
        if heads.isEmpty { return }
        writer.name("cutFrom")
        writer.array { writer in
            for (owner, head) in heads {
                writer.object { writer in
                    writer.member("syncId", owner.text)
                    writer.member("head", head.rawValue)
                }
            }
        }
    }

    /// The head that the next page of an owner must have reached, after a page without rows of it.
    private static func headOfUnsentRows(_ pull: OwnerPull) -> TimeStamp? {
        pull.leastHead > pull.knowledge.requiredHead ? pull.leastHead : pull.knowledge.cutFrom
    }

    /// Writes the fields before `batch`.
    func writeHead(to writer: inout JSONWriter) {
        writer.member("syncId", caller.syncID.text)
        writer.member("epoch", server.epoch)
        writer.member("schemaVersion", server.schemaVersion)
        writer.name("owners")
        writer.array { writer in
            for grant in caller.grants {
                writer.object { writer in
                    writer.member("syncId", grant.owner.text)
                    writer.member("access", grant.access.rawValue)
                }
            }
        }
    }

    private static func asSent(_ knowledge: OwnerKnowledge) -> OwnerRows {
        let entries = knowledge.entries.sorted { $0.key < $1.key }.map { (device: $0.key, timeStamp: $0.value) }
        return OwnerRows(entries: entries, hasMore: true)
    }

    /// Whether the device must pull again for rows that are there.
    func hasMore(_ pages: [OwnerPage]) -> Bool {
        !unread(pages).isEmpty
            || pages.contains { if case .rows(let rows) = $0.content { rows.hasMore } else { false } }
    }

    private func writeKnowledge(_ owner: SyncID, _ rows: OwnerRows, to writer: inout JSONWriter) {
        let known = envelope.knowledge[owner]
        if envelope.isCompact, !rows.hasMore {
            // One entry for all devices; never lower than the request's.
            writer.entry(owner, .everyOther, max(rows.head, known.highest))
            return
        }
        for entry in rows.entries { writer.entry(owner, entry.device, entry.timeStamp) }
        if let floor = rows.floor ?? known.givenFloor { writer.entry(owner, .everyOther, floor) }
    }

    /// Whether an entry of the vector rises although no row is sent.
    private func moved(_ owner: SyncID, _ rows: OwnerRows) -> Bool {
        let known = envelope.knowledge[owner]
        return rows.entries.contains { $0.timeStamp > known[$0.device] }
    }
}

extension JSONWriter {
    fileprivate mutating func entry(_ owner: SyncID, _ device: KnowledgeID, _ timeStamp: TimeStamp) {
        object { writer in
            writer.member("syncId", owner.text)
            writer.member("knowledgeId", device.text)
            writer.member("lastTimeStamp", timeStamp.rawValue)
        }
    }

    fileprivate mutating func resync(_ owner: SyncID) {
        object { writer in
            writer.member("syncId", owner.text)
            writer.member("reason", "history_changed" as StaticString)
        }
    }
}
