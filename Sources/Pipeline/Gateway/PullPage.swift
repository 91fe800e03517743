import FanOutLink
import JSONText
import SyncModel

/// The pull half of a request: whose streams are read, and how the answer is spelled.
struct PullPage: Sendable {
    /// The history and newest schema version, for the answer's head.
    struct Server: Sendable {
        let epoch: String
        let schemaVersion: String
    }

    private let caller: Caller
    private let envelope: Envelope
    private let server: Server
    /// Owners whose part of the request's vector is of another history.
    private let otherHistory: Set<SyncID>
    /// What to ask the fan-outs for.
    let request: PagePull

    init(
        caller: Caller, envelope: Envelope, server: Server, held: [SyncID: Set<TimeStamp>], maximumBytes: Int
    ) {
        self.caller = caller
        self.envelope = envelope
        self.server = server
        // Another epoch: whatever the device's vector names is of that history.
        let isOther = envelope.epoch.map { !$0.utf8.elementsEqual(server.epoch.utf8) } ?? false
        let otherHistory = isOther ? Set(envelope.knowledge.owners.keys) : []
        self.otherHistory = otherHistory
        let owners = caller.grants.lazy.map(\.owner).filter { !otherHistory.contains($0) }
        request = PagePull(
            owners: owners.map {
                OwnerPull(owner: $0, knowledge: envelope.knowledge[$0], held: held[$0] ?? [])
            },
            limit: envelope.limit, maximumBytes: maximumBytes)
    }

    /// The owners of the request's vector that are not granted.
    private var revoked: [SyncID] {
        let named = envelope.knowledge.owners
        // Mostly all are granted, which is told without a set.
        if caller.grants.count(where: { named[$0.owner] != nil }) == named.count { return [] }
        return Set(named.keys).subtracting(caller.grants.map(\.owner)).sorted()
    }

    /// The owners that a cut page did not come to.
    private func unread(_ pages: [OwnerPage]) -> [OwnerPull] {
        if pages.count == request.owners.count { return [] }
        let read = Set(pages.map(\.owner))
        return request.owners.filter { !read.contains($0.owner) }
    }

    /// Whether a page tells a device something, so that a long poll ends.
    func hasNews(_ pages: [OwnerPage]) -> Bool {
        if !otherHistory.isEmpty || !revoked.isEmpty { return true }
        return pages.contains { page in
            switch page.content {
            case .historyChanged: true
            case .rows(let rows): rows.count > 0 || rows.hasMore || moved(page.owner, rows)
            }
        }
    }

    /// Writes the fields of the answer behind `syncId … batch`.
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
            // Owners behind the page's end: what the device holds of them has not changed.
            for pull in unread(pages) { writeKnowledge(pull.owner, Self.asSent(pull.knowledge), to: &writer) }
        }
        writer.name("hasMore")
        writer.value(hasMore(pages))
        writer.name("revoked")
        writer.array { writer in
            for owner in revoked { writer.value(owner.text) }
        }
        writer.name("resync")
        writer.array { writer in
            for grant in caller.grants where otherHistory.contains(grant.owner) { writer.resync(grant.owner) }
            for page in pages where page.content == .historyChanged { writer.resync(page.owner) }
        }
        writeCutFrom(pages, to: &writer)
    }

    /// Names the heads that this page and those before it were cut from: the device gives them back with its next pull.
    private func writeCutFrom(_ pages: [OwnerPage], to writer: inout JSONWriter) {
        var heads: [(owner: SyncID, head: TimeStamp)] = []
        for page in pages {
            if case .rows(let rows) = page.content,
                let head = rows.cutFrom(known: envelope.knowledge[page.owner].cutFrom)
            {
                heads.append((page.owner, head))
            }
        }
        for pull in unread(pages) {
            if let head = pull.knowledge.cutFrom { heads.append((pull.owner, head)) }
        }
        if heads.isEmpty { return }
        writer.name("cutFrom")
        writer.array { writer in
            for (owner, head) in heads {
                writer.object { writer in
                    writer.name("syncId")
                    writer.value(owner.text)
                    writer.name("head")
                    writer.value(head.rawValue)
                }
            }
        }
    }

    /// Writes the fields before `batch`.
    func writeHead(to writer: inout JSONWriter) {
        writer.name("syncId")
        writer.value(caller.syncID.text)
        writer.name("epoch")
        writer.value(server.epoch)
        writer.name("schemaVersion")
        writer.value(server.schemaVersion)
        writer.name("owners")
        writer.array { writer in
            for grant in caller.grants {
                writer.object { writer in
                    writer.name("syncId")
                    writer.value(grant.owner.text)
                    writer.name("access")
                    writer.value(grant.access.rawValue)
                }
            }
        }
    }

    private static func asSent(_ knowledge: OwnerKnowledge) -> OwnerRows {
        let entries = knowledge.entries.sorted { $0.key < $1.key }.map { (device: $0.key, timeStamp: $0.value) }
        return OwnerRows(entries: entries, hasMore: true)
    }

    private func hasMore(_ pages: [OwnerPage]) -> Bool {
        !unread(pages).isEmpty
            || pages.contains { if case .rows(let rows) = $0.content { rows.hasMore } else { false } }
    }

    private func writeKnowledge(_ owner: SyncID, _ rows: OwnerRows, to writer: inout JSONWriter) {
        let known = envelope.knowledge[owner]
        if envelope.isCompact, !rows.hasMore {
            // One number says it all; never lower than what was sent.
            writer.entry(owner, .everyOther, max(rows.head, known.highest))
            return
        }
        for entry in rows.entries { writer.entry(owner, entry.device, entry.timeStamp) }
        if let floor = known.givenFloor { writer.entry(owner, .everyOther, floor) }
    }

    /// Whether the vector's entries differ from the request's, though no row was sent.
    private func moved(_ owner: SyncID, _ rows: OwnerRows) -> Bool {
        let known = envelope.knowledge[owner]
        return rows.entries.contains { $0.timeStamp > known[$0.device] }
    }
}

extension JSONWriter {
    fileprivate mutating func entry(_ owner: SyncID, _ device: KnowledgeID, _ timeStamp: TimeStamp) {
        object { writer in
            writer.name("syncId")
            writer.value(owner.text)
            writer.name("knowledgeId")
            writer.value(device.text)
            writer.name("lastTimeStamp")
            writer.value(timeStamp.rawValue)
        }
    }

    fileprivate mutating func resync(_ owner: SyncID) {
        object { writer in
            writer.name("syncId")
            writer.value(owner.text)
            writer.name("reason")
            writer.value("history_changed" as StaticString)
        }
    }
}
