import Foundation
import Seeded
import Testing

/// Devices of all protocols on the rows of one owner.
///
/// Users edit at random, requests and answers are lost, apps are killed between any two of them, the server at any moment, and another
/// device writes meanwhile. Of each protocol one app follows its document alone, and one what docs/faces/ advises.
///
/// Each edit has a title of its own, so that what became of it can be seen. An observer pulls whenever the server may have changed.
///
/// Notes have comments. Users of protocols without a rule for them delete a note with its comments; with CRUD they say where these go.
final class ProtocolFleet {
    private struct Member {
        let name: String
        let contract: FleetProtocol
        let port: UInt16
        let isLiteral: Bool
        var app: any FleetApp
    }

    /// What a user did to a row.
    private struct Edit {
        let member: String
        let tag: String
        /// `nil`: a delete.
        let title: String?
        /// What the user saw before.
        let seen: String?
        /// The app gives the edit its time between these two.
        let madeAt: Int
        var madeBy: Int?
        /// The server had it, the app told its user of a conflict, or the user saw it and edited the row once more.
        var isSettled = false
        /// When the sync began in which it was stored.
        var sentAt: Int?
    }

    private let folder: TestFolder
    private let ports: [UInt16]
    private let network: FleetNetwork
    private var random: SeededRandom
    private var members: [Member] = []
    private var observer: TestDevice
    private var other: TestDevice
    private var edits: [Edit] = []
    /// What the observer last saw of each row that is not deleted.
    private var titles: [String: String] = [:]
    /// Who made each row.
    private var makers: [String: FleetProtocol] = [:]
    private var rowCount = 0
    private var number = 0

    /// - Parameter restart: kills a process of the server, and returns when another one is ready in its place.
    init(
        ports: [UInt16], in folder: TestFolder, seed: UInt64, restart: @escaping @Sendable () async throws -> Void
    ) throws {
        self.folder = folder
        self.ports = ports
        network = FleetNetwork(restart: restart)
        random = SeededRandom(seed: seed)
        observer = TestDevice(port: ports[0], syncID: "abc", knowledgeID: "observer")
        other = TestDevice(port: ports[0], syncID: "abc", knowledgeID: "other")
        for (index, contract) in (FleetProtocol.allCases + FleetProtocol.allCases).enumerated() {
            let (name, port) = ("\(contract)\(index)", ports[index % ports.count])
            let isLiteral = index >= FleetProtocol.allCases.count
            members.append(
                Member(
                    name: name, contract: contract, port: port, isLiteral: isLiteral,
                    app: try open(contract, name, port, isLiteral)))
        }
    }

    // The child is first: its table does not come before its parent's by chance.
    static let schema = """
        tables:
          comment:
            policy: lastWriteWins
            columns:
              tag: text
              title: text
              note_id: { type: text, references: note, onDelete: reassign }
          note:
            policy: lastWriteWins
            columns:
              tag: text
              title: text
        """

    private func open(
        _ contract: FleetProtocol, _ name: String, _ port: UInt16, _ isLiteral: Bool
    ) throws -> any FleetApp {
        var client = DeviceClient(port: port, syncID: "abc")
        client.network = network
        return try contract.open(name, client, in: folder, isLiteral: isLiteral)
    }

    // MARK: The game

    func play(_ steps: Int) async throws {
        try await makeHome()
        for _ in 0..<steps {
            let index = Int.random(in: 0..<members.count, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0...1: try create(index)
            case 2...4: try edit(index)
            case 5: try delete(index)
            default: try await sync(index)
            }
        }
        try await settle()
    }

    private func nextTitle(_ name: String) -> String {
        number += 1
        return "\(name) \(number)"
    }

    private func makeHome() async throws {
        let title = nextTitle("other")
        note("other", NewRow.home.tag, title, seen: nil)
        _ = try await other.sync([
            TestDevice.change(
                NewRow.home.id, ["tag": JSON(NewRow.home.tag), "title": JSON(title)], table: FleetTable.note.name
            ).with("updatedAt", JSON(TrackerDevice.now()))
        ])
        try await observe(nil, since: Self.now())
    }

    /// Makes a note, or a comment on one that the user sees.
    private func create(_ index: Int) throws {
        rowCount += 1
        let member = members[index]
        let (row, title) = (NewRow(number: rowCount), nextTitle(member.name))
        let notes = try member.app.rows().filter { $0.table == .note }
        note(member.name, row.tag, title, seen: nil)
        makers[row.tag] = member.contract
        try member.app.create(row, title, on: random.chance(60) ? notes.randomElement(using: &random) : nil)
        noteEnd()
    }

    private func edit(_ index: Int) throws {
        guard let row = try members[index].app.rows().randomElement(using: &random) else { return }
        let title = nextTitle(members[index].name)
        note(members[index].name, row.tag, title, seen: row.title)
        try members[index].app.edit(row, title)
        noteEnd()
    }

    private func delete(_ index: Int) throws {
        let (app, name) = (members[index].app, members[index].name)
        let rows = try app.rows()
        guard let row = rows.filter({ $0.tag != NewRow.home.tag }).randomElement(using: &random) else { return }
        if row.table == .note, let app = app as? any ReassigningFleetApp {
            let others = rows.filter { $0.table == .note && $0.tag != row.tag }
            note(name, row.tag, nil, seen: row.title)
            try app.delete(row, commentsTo: others.randomElement(using: &random)?.key ?? NewRow.home.id)
            return noteEnd()
        }
        let comments = row.table == .note ? rows.filter { $0.note == row.key } : []
        for row in comments + [row] {
            note(name, row.tag, nil, seen: row.title)
            try app.delete(row)
        }
        noteEnd()
    }

    private func note(_ member: String, _ tag: String, _ title: String?, seen: String?) {
        for index in edits.indices
        where edits[index].member == member && edits[index].tag == tag && edits[index].title == seen && seen != nil {
            edits[index].isSettled = true
        }
        edits.append(Edit(member: member, tag: tag, title: title, seen: seen, madeAt: Self.now()))
    }

    /// The app has given its edits their times by now.
    private func noteEnd() {
        for index in edits.indices where edits[index].madeBy == nil { edits[index].madeBy = Self.now() }
    }

    private static func now() -> Int { Int(Date().timeIntervalSince1970 * 1_000_000) }

    /// A sync that fails at a random request, or works.
    private func sync(_ index: Int) async throws {
        let start = Self.now()
        let failure = random.chance(40) ? FleetNetwork.Failure.allCases.randomElement(using: &random) : nil
        network.fail(failure, at: Int.random(in: 0..<7, using: &random))
        // Another device writes between two requests, for which it needs the server.
        if random.chance(40), failure != .server {
            network.meanwhile(at: Int.random(in: 0..<7, using: &random)) { [unowned self] in
                try await observe(members[index], since: start)
                try await writeMeanwhile()
            }
        }
        do {
            try await members[index].app.sync()
        } catch let lost as FleetNetwork.Lost {
            try noteConflicts(index)
            if lost.failure == .kill {
                let member = members[index]
                members[index].app = try open(member.contract, member.name, member.port, member.isLiteral)
            }
        } catch let failure as DeviceClient.Failure
            where network.isServerKilled && (failure.status.map { $0 >= 500 } ?? true)
        {
            // As its app sees it, the request was not answered, or the server was not ready.
        }
        try await network.work()
        try noteConflicts(index)
        try await observe(members[index], since: start)
        expectNoComments(index)
    }

    /// Expects the server to have no comments on notes of which a member has just been told so.
    private func expectNoComments(_ index: Int) {
        guard let app = members[index].app as? any ReassigningFleetApp else { return }
        let notes = Set(app.takeReassigned())
        for row in observer.rows.values where row["deleted"].bool != true {
            let note = row["values"]["note_id"].string ?? ""
            #expect(!notes.contains(note), "\(row["values"]["tag"]) is on a note that \(members[index].name) deleted")
        }
    }

    private func noteConflicts(_ index: Int) throws {
        let tags = try members[index].app.takeConflicts()
        for edit in edits.indices where edits[edit].member == members[index].name && tags.contains(edits[edit].tag) {
            edits[edit].isSettled = true
        }
    }

    /// A device of the client contract writes to a row that it has just pulled.
    private func writeMeanwhile() async throws {
        try await other.drain()
        let live = other.rows.values.filter { $0["deleted"].bool != true }.sortedByText
        guard let row = live.randomElement(using: &random), let tag = row["values"]["tag"].string else { return }
        let title = nextTitle("other")
        note("other", tag, title, seen: row["values"]["title"].string)
        let start = Self.now()
        _ = try await other.sync([
            TestDevice.change(row["id"].string ?? "", ["title": JSON(title)], table: row["table"].string ?? "")
                .with("updatedAt", JSON(TrackerDevice.now()))
        ])
        try await observe(nil, since: start)
    }

    // MARK: What became of edits

    /// Pulls, and settles what the server has now.
    private func observe(_ member: Member?, since start: Int) async throws {
        try await observer.drain()
        var live: [String: String] = [:]
        for row in observer.rows.values where row["deleted"].bool != true {
            live[row["values"]["tag"].string ?? ""] = row["values"]["title"].string ?? ""
        }
        for (tag, title) in live where titles[tag] != title {
            guard let index = edits.firstIndex(where: { $0.tag == tag && $0.title == title }) else {
                Issue.record("no user wrote \(title) to \(tag)")
                continue
            }
            expectRightful(index, over: titles[tag], member)
            edits[index].isSettled = true
            edits[index].sentAt = start
        }
        titles = live
        expectNotesBeforeComments()
    }

    /// Expects the note of each comment to be there, or to have been.
    ///
    /// CRUD alone sends a comment before its note, where the note was edited after it was made, and before it was ever sent.
    private func expectNotesBeforeComments() {
        let rows = observer.rows.values
        let notes = Set(rows.filter { $0["table"].string == FleetTable.note.name }.compactMap { $0["id"].string })
        for row in rows where row["table"].string == FleetTable.comment.name && row["deleted"].bool != true {
            let tag = row["values"]["tag"].string ?? ""
            #expect(
                makers[tag] == .crud || notes.contains(row["values"]["note_id"].string ?? ""),
                "\(tag), made by \(makers[tag].map(\.rawValue) ?? "nobody"), came before its note")
        }
    }

    /// Expects an edit that replaced another one to be one of the policy: its user saw what it replaced, or it was made later.
    private func expectRightful(_ index: Int, over replaced: String?, _ member: Member?) {
        let edit = edits[index]
        guard let replaced, !hasSeen(replaced, edit),
            let before = edits.first(where: { $0.tag == edit.tag && $0.title == replaced }),
            before.member != edit.member
        else { return }
        guard let contract = member?.contract, contract.sendsTimes else {
            if member != nil { Issue.record("\(edit.title ?? "") replaced \(replaced), which its user had not seen") }
            return
        }
        let isTimed = members.first { $0.name == before.member }?.contract.sendsTimes ?? true
        // The log's time has milliseconds.
        let madeAt = isTimed ? before.madeAt : (before.sentAt ?? 0) / 1000 * 1000
        #expect(
            (edit.madeBy ?? Self.now()) / contract.resolution >= madeAt / contract.resolution,
            "\(edit.title ?? "") replaced \(replaced), which was made later")
    }

    /// Whether a user saw a title before an edit, or before the edits of its own that this one followed.
    private func hasSeen(_ title: String, _ edit: Edit) -> Bool {
        if edit.seen == title { return true }
        let own = edits.first {
            $0.member == edit.member && $0.tag == edit.tag && $0.title == edit.seen && edit.seen != nil
        }
        return own.map { hasSeen(title, $0) } ?? false
    }

    private func settle() async throws {
        for _ in 0..<4 {
            for index in members.indices {
                let start = Self.now()
                try await members[index].app.sync()
                try noteConflicts(index)
                try await observe(members[index], since: start)
                expectNoComments(index)
            }
        }
        let fresh = TestDevice(port: ports[ports.count - 1], syncID: "abc", knowledgeID: "fresh")
        var drained = fresh
        try await drained.drain()
        let expected = drained.rows.values.filter { $0["deleted"].bool != true }.map { row in
            ["tag", "title", "note_id"].map { row["values"][$0].string ?? "" }.joined(separator: " ")
        }.sorted()
        for member in members {
            let rows = try member.app.rows().map { "\($0.tag) \($0.title) \($0.note)" }.sorted()
            #expect(rows == expected, "\(member.name)")
            let hasPending = try member.app.hasPending
            #expect(!hasPending, "\(member.name)")
        }
        let deleted = Set(edits.filter { $0.title == nil }.map(\.tag))
        for edit in edits {
            let isLive = titles[edit.tag] != nil
            // Deletes win; a row that no user deleted must be there.
            if !isLive {
                #expect(deleted.contains(edit.tag), "\(edit.tag) is gone, and no user deleted it")
            } else {
                #expect(edit.isSettled, "\(edit.member) lost \(edit.title ?? "the delete") of \(edit.tag)")
            }
        }
        #expect(edits.count > members.count && !expected.isEmpty)
    }
}
