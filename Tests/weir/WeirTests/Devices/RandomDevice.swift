import Foundation
import Seeded
import Testing

/// A device that sends any valid request, chosen by a seed, on a few rows that other devices write, too.
struct RandomDevice: Sendable {
    var device: TestDevice
    /// The owners whose rows it may write.
    private let owners: [String]
    /// The changes of the batch that got no answer.
    private var unanswered: [JSON]?
    /// The last batch that got an answer.
    private var last: (changes: [JSON], verdicts: [String])?

    init(_ weir: WeirProcess, syncID: String, knowledgeID: String, links: String? = nil, owners: [String]) {
        device = TestDevice(weir, syncID: syncID, knowledgeID: knowledgeID, links: links)
        self.owners = owners
    }

    /// Sends one request.
    mutating func play(_ random: inout SeededRandom) async throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5 where !owners.isEmpty: try await sync(next(&random), &random)
        case 5 where !owners.isEmpty: try await upload(next(&random))
        case 6: try await repeatLast()
        default: _ = try await device.sync(limit: Int.random(in: 1...6, using: &random))
        }
    }

    /// Sends a batch while the server ends; either may be first.
    mutating func playAtTheEnd(of weir: WeirProcess, isClean: Bool, _ random: inout SeededRandom) async throws {
        let changes = next(&random)
        async let status = isClean ? weir.stop() : weir.kill()
        do {
            try await sync(changes, &random)
        } catch let failure as DeviceClient.Failure where failure.status.map({ isClean && $0 >= 503 }) ?? true {}
        #expect(await status == (isClean ? 0 : SIGKILL))
    }

    /// Repeats the batch that got no answer.
    mutating func settle(_ random: inout SeededRandom) async throws {
        if let changes = unanswered { try await sync(changes, &random) }
    }

    /// The batch that got no answer, else a new one.
    private func next(_ random: inout SeededRandom) -> [JSON] {
        unanswered ?? (0..<Int.random(in: 1...4, using: &random)).map { _ in change(&random) }
    }

    private mutating func sync(_ changes: [JSON], _ random: inout SeededRandom) async throws {
        if unanswered != nil { device.batch -= 1 }
        unanswered = changes
        let answer = try await device.sync(changes, limit: Int.random(in: 1...50, using: &random))
        unanswered = nil
        let verdicts = TestDevice.verdicts(answer)
        #expect(verdicts.count == changes.count)
        last = (changes, verdicts)
    }

    private mutating func upload(_ changes: [JSON]) async throws {
        if unanswered == nil { device.batch += 1 }
        unanswered = changes
        let answer = try await device.client.post("/v1/upload", request(changes))
        #expect(answer.status == 202)
        unanswered = nil
        last = nil
    }

    /// Repeats a batch with the same number and content, and expects the first outcome.
    private func repeatLast() async throws {
        guard let last, unanswered == nil else { return }
        let answer = try await device.client.sync(request(last.changes))
        #expect(TestDevice.verdicts(answer) == last.verdicts)
    }

    private func request(_ changes: [JSON]) -> JSON {
        [
            "knowledgeId": JSON(device.knowledgeID), "batch": JSON(device.batch),
            "changes": JSON(changes.map(\.value)),
        ]
    }

    private func change(_ random: inout SeededRandom) -> JSON {
        let owner = owners.randomElement(using: &random) ?? ""
        let table = ["person", "note", "seat", "amount"].randomElement(using: &random) ?? ""
        let id = "r\(Int.random(in: 0..<4, using: &random))"
        let columns = ["person": ["name", "email"], "note": ["text", "color"], "seat": ["holder", "label"]]
        var values: JSON = [:]
        for column in columns[table] ?? [] where Int.random(in: 0..<3, using: &random) > 0 {
            values = values.with(column, JSON("\(device.knowledgeID) \(Int.random(in: 0..<100, using: &random))"))
        }
        if table == "amount" { values = ["value": JSON("\(Int.random(in: 0..<12_000, using: &random)).5")] }
        var change = TestDevice.change(id, values, table: table).with("syncId", JSON(owner))
        let known = device.rows.values.first {
            $0["table"] == change["table"] && $0["id"] == change["id"] && $0["syncId"] == change["syncId"]
        }
        if Int.random(in: 0..<2, using: &random) == 0 {
            change = change.with("base", known?["timeStamp"] ?? 0)
            if Int.random(in: 0..<3, using: &random) == 0 { change = change.with("ifBase", true) }
        }
        if Int.random(in: 0..<6, using: &random) == 0 { change = change.with("deleted", true) }
        if table == "note", Bool.random(using: &random) {
            let day = Int.random(in: 1...9, using: &random)
            change = change.with("updatedAt", JSON("2020-01-0\(day)T00:00:00.000000Z"))
        }
        return change
    }
}
