import ChangeLog
import Foundation
import Fuzzing
import Seeded
import Testing

/// What comes out of random batches is bounded by what went in, in every topic and every answer (I10), and nothing stops.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct OutputBoundsTests {
    private static let pageBytes = 256 << 10
    /// Of the rows in these tests.
    private static let rowBytes = 100_000
    private static let rowCount = 400
    /// Ids, positions and messages of a change in any record or answer.
    private static let changeBytes = 1024
    /// Of a batch.
    private static let deadLetterBytes = 80 << 10

    @Test(arguments: TestLength.seeds(2, short: 1, long: 6)) func outputsOfRandomBatchesAreBounded(seed: UInt64)
        async throws
    {
        var random = SeededRandom(seed: seed)
        let cluster = try await WeirCluster.make(
            .init(partitions: 2, settings: ["gateway.page-bytes": "\(Self.pageBytes)"]))
        let members = try await cluster.startOneOfEach()
        let port = try #require(members.first { $0.role == .gateway }).port
        var writer = TestDevice(port: port, syncID: "abc", knowledgeID: "writer")
        // All of these rows together are more than the queue of a producer.
        let large = JSON(String(repeating: "x", count: Self.rowBytes))
        for start in stride(from: 0, to: Self.rowCount, by: 30) {
            let ids = start..<min(start + 30, Self.rowCount)
            _ = try await writer.sync(ids.map { TestDevice.change("r\($0)", ["name": large]) })
        }
        _ = try await writer.sync(
            (0..<30).map { TestDevice.change("s\($0)", ["holder": large, "label": "l"], table: "seat") })
        let sender = TestDevice(port: port, syncID: "abc", knowledgeID: "sender", links: "def:write")
        let written = Self.rowCount + 30
        var (sent, changeCount) = (written * (Self.rowBytes + Self.changeBytes), written)
        for number in 1...12 {
            // Every kind comes twice, the deletion of all rows last.
            let changes = number == 12 ? Self.deletions : Self.changes(of: number % 6, &random)
            let body = ["knowledgeId": "sender", "batch": JSON(number), "changes": JSON(changes.map(\.value))] as JSON
            sent += try JSONSerialization.data(withJSONObject: body.value).count
            changeCount += changes.count
            let answer = try await Retry.untilAnswered { () async throws -> DeviceClient.Answer in
                let answer = try await sender.client.post("/v1/upload", body, headers: ["Prefer": "wait=10"])
                guard answer.status == 200 else {
                    throw DeviceClient.Failure(description: "\(answer.status)", status: answer.status)
                }
                return answer
            }
            let limit = Self.pageBytes + Self.rowBytes + (changes.count + 1) * Self.changeBytes
            #expect(answer.body.count <= limit, "batch \(number) is answered with \(answer.body.count) bytes")
            var next = try answer.json()["batch"]["rowsFrom"].int
            while let from = next {
                let page = try await sender.client.get("/v1/batches/\(number)?knowledgeId=sender&rowsFrom=\(from)")
                #expect(page.body.count <= Self.pageBytes + Self.rowBytes + 16 * Self.changeBytes)
                next = try page.json()["batch"]["rowsFrom"].int
            }
        }
        // Nothing stands still: the next batch of each owner has its outcome.
        for owner in ["abc", "def"] {
            var device = TestDevice(port: port, syncID: owner, knowledgeID: "last")
            let answer = try await device.sync([TestDevice.change("last", ["name": "n"])])
            #expect(TestDevice.verdicts(answer) == ["applied"])
            try await device.drain()
        }
        for member in members.reversed() { await member.stop() }

        func size(_ topic: Topic) async throws -> Int {
            let records = try await TopicRecords.read(topic, of: cluster).partitions.joined()
            return records.reduce(0) { $0 + $1.key.count + $1.value.count }
        }
        let batches = 12 + written / 30 + 4
        #expect(try await size(.uploads) <= sent + batches * Self.changeBytes)
        #expect(try await size(.changes) <= sent + (changeCount + batches) * Self.changeBytes)
        #expect(try await size(.ordered) <= (changeCount + batches) * (Self.rowBytes + Self.changeBytes))
        #expect(try await size(.deadLetters) <= batches * Self.deadLetterBytes)
    }

    private static var deletions: [JSON] {
        (0..<rowCount).map { ["table": "person", "id": JSON("r\($0)"), "deleted": true] }
    }

    /// A batch of one kind.
    private static func changes(of kind: Int, _ random: inout SeededRandom) -> [JSON] {
        func id() -> String { "r\(Int.random(in: 0..<rowCount, using: &random))" }
        let count = Int.random(in: 200...400, using: &random)
        return switch kind {
        // Small changes of large rows, whose results hold the rows.
        case 0: (0..<count).map { TestDevice.change(id(), ["email": JSON("e\($0)")]) }
        // Stale ones, whose answers show the rows.
        case 1: (0..<count).map { TestDevice.change("s\($0 % 30)", ["label": "m"], table: "seat").with("base", 1) }
        // Refused ones with ids and messages as long as they can be.
        case 2:
            (0..<10 * count).map { _ in
                ["table": JSON(String(repeating: "t", count: 60)), "id": JSON(String(repeating: "i", count: 200))]
            }
        case 3: (0..<10 * count).map { _ in JSON(0) }
        // Values of the wrong type, and rows of another owner.
        case 4:
            (0..<count).map { number in
                TestDevice.change("o\(number)", ["name": number % 2 == 0 ? JSON(["a"]) : "n"]).with("syncId", "def")
            }
        default: (0..<count).map { TestDevice.change("n\($0)", ["name": JSON(String(repeating: "y", count: 5000))]) }
        }
    }
}
