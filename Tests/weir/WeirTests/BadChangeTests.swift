import Foundation
import Testing

/// An invalid change is refused by itself, and never blocks the batches after it (I9).
@Suite struct BadChangeTests {
    private static let schema = """
        tables:
          thing:
            columns:
              name: { type: text, length: 10 }
              body: text
              count: integer
              price: decimal(6,2)
              weight: real
              done: boolean
              key: uuid
              due: timestamp
              day: date
              photo: bytes
              labels: json
          seat:
            policy: checkBase
            columns:
              holder: text
              label: { type: text, nullable: false }
        """

    private static func start() async throws -> WeirProcess {
        let folder = try TestFolder()
        let path = try folder.write(schema, to: "schema.yaml")
        return try await WeirProcess.start(
            schema: path, in: folder, settings: ["partitions": "2", "limits.max-value-bytes": "1KiB"])
    }

    /// Changes as JSON that are refused in any state of the server, with their codes.
    private static let refused: [(String, String)] =
        [
            "17", "null", "[]", #""x""#, "{}", #"{"id":"a"}"#, #"{"table":"thing"}"#, #"{"table":7,"id":"a"}"#,
            #"{"table":"thing","id":""}"#, #"{"table":"thing","id":7}"#, #"{"table":"thing","id":"a\u0000"}"#,
            #"{"table":"thing","id":"\#(String(repeating: "i", count: 256))"}"#,
            #"{"table":"thing","id":"a","syncId":""}"#, #"{"table":"thing","id":"a","syncId":7}"#,
            #"{"table":"thing","id":"a","knowledgeId":""}"#, #"{"table":"thing","id":"a","knowledgeId":"*"}"#,
            #"{"table":"thing","id":"a","base":-1}"#, #"{"table":"thing","id":"a","base":"1"}"#,
            #"{"table":"thing","id":"a","base":9007199254740992}"#, #"{"table":"thing","id":"a","base":1e999}"#,
            #"{"table":"thing","id":"a","deleted":1}"#, #"{"table":"thing","id":"a","ifBase":"no"}"#,
            #"{"table":"thing","id":"a","updatedAt":"yesterday"}"#, #"{"table":"thing","id":"a","values":[]}"#,
            #"{"table":"thing","id":"a","id":"b"}"#,
        ].map { ($0, "invalid_change") }
        + [
            (#"{"table":"nothing","id":"a"}"#, "unknown_table"),
            (#"{"table":"thing\u0000","id":"a"}"#, "unknown_table"),
            (#"{"table":"thing; DROP TABLE thing","id":"a"}"#, "unknown_table"),
            (#"{"table":"thing","id":"a","values":{"nothing":1}}"#, "unknown_column"),
            (#"{"table":"thing","id":"a","values":{"time_stamp":1}}"#, "unknown_column"),
            (#"{"table":"thing","id":"a","syncId":"stranger"}"#, "not_granted"),
            (#"{"table":"thing","id":"a","syncId":"readable"}"#, "not_granted"),
            (#"{"table":"seat","id":"s","values":{"holder":"A"}}"#, "missing_value"),
            (#"{"table":"seat","id":"s","values":{"label":null}}"#, "invalid_value"),
            (#"{"table":"thing","id":"gone","base":5,"values":{}}"#, "row_gone"),
            (
                #"{"table":"thing","id":"a","values":{"body":"\#(String(repeating: "x", count: 1100))"}}"#,
                "value_too_large"
            ),
        ]
        + [
            #""name":7"#, #""name":"elevenchars""#, #""name":"a\u0000""#, #""count":1.5"#, #""count":true"#,
            #""count":9223372036854775808"#, #""count":"x""#, #""price":"12345.67""#, #""price":"1.234""#,
            #""price":"NaN""#, #""weight":1e999"#, #""weight":"1""#, #""done":0"#, #""done":"true""#, #""key":"x""#,
            #""key":"00112233-4455-6677-8899-aabbccddee""#, #""due":"2026-02-30T00:00:00Z""#,
            #""due":"2026-01-01""#, #""due":"0000-01-01T00:00:00Z""#, #""due":1767323045"#, #""day":"2026-13-01""#,
            #""photo":"*""#, #""photo":[1]"#, #""labels":{"a":1,"a":2}"#, #""labels":"\u0000""#,
            #""labels":\#(String(repeating: "[", count: 100))\#(String(repeating: "]", count: 100))"#,
        ].map { (#"{"table":"thing","id":"a","values":{\#($0)}}"#, "invalid_value") }

    /// A batch of these changes, as bytes that JSONSerialization would not write.
    private static func batch(_ number: Int, _ changes: [String], atomic: Bool = false) -> Data {
        Data(
            (#"{"knowledgeId":"k1","batch":\#(number),"atomic":\#(atomic),"changes":["# + changes.joined(separator: ",")
                + "]}").utf8)
    }

    private static let good = #"{"table":"thing","id":"good","values":{"name":"A"}}"#

    @Test func eachInvalidChangeIsRefusedAndTheOthersAreApplied() async throws {
        let weir = try await Self.start()
        var bystander = HealthyDevice(weir, table: "thing")
        let client = DeviceClient(port: weir.port, syncID: "abc", links: "readable:read")
        // All at once, each beside a good one.
        let all = Self.batch(1, Self.refused.flatMap { [$0.0, Self.good] })
        let answer = try await bystander.watch { try await client.post("/v1/sync", bytes: all) }
        #expect(answer.status == 200)
        let expected = Self.refused.flatMap { ["refused \($0.1)", "applied"] }
        let verdicts = TestDevice.verdicts(try answer.json())
        for (index, (verdict, expected)) in zip(verdicts, expected).enumerated() where verdict != expected {
            Issue.record("\(Self.refused[index / 2].0): \(verdict), not \(expected)")
        }
        #expect(verdicts.count == expected.count)
        // A repeat gets the first outcome.
        let again = try await client.post("/v1/sync", bytes: all)
        #expect(try again.json()["batch"] == answer.json()["batch"])
        // And each alone in a batch, which does not delay the next.
        var number = 1
        for (change, code) in Self.refused {
            number += 1
            let alone = try await client.post("/v1/sync", bytes: Self.batch(number, [change]))
            #expect(TestDevice.verdicts(try alone.json()) == ["refused \(code)"], "\(change)")
        }
        let last = try await client.post("/v1/sync", bytes: Self.batch(number + 1, [Self.good]))
        #expect(TestDevice.verdicts(try last.json()) == ["applied"])
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }

    @Test func anAtomicBatchWithAnInvalidChangeAppliesNothingAndTheNextIsApplied() async throws {
        let weir = try await Self.start()
        let client = DeviceClient(port: weir.port, syncID: "abc", links: "readable:read")
        // A change for another owner is that owner's part, not the caller's.
        let own = Self.refused.filter { $0.1 != "not_granted" }
        for (index, (change, code)) in own.enumerated() {
            let answer = try await client.post(
                "/v1/sync", bytes: Self.batch(2 * index + 1, [Self.good, change], atomic: true))
            #expect(
                TestDevice.verdicts(try answer.json()) == ["refused batch_aborted", "refused \(code)"], "\(change)")
        }
        #expect(try await client.sync(["knowledgeId": "k2"])["changes"].array.isEmpty)
        let last = try await client.post("/v1/sync", bytes: Self.batch(1000, [Self.good], atomic: true))
        #expect(TestDevice.verdicts(try last.json()) == ["applied"])
        #expect(await weir.stop() == 0)
    }

    @Test func aNumberRepeatedWithOtherContentIsAMismatchAndTheNextIsApplied() async throws {
        let weir = try await Self.start()
        let client = DeviceClient(port: weir.port, syncID: "abc")
        let first = try await client.post("/v1/sync", bytes: Self.batch(1, [Self.good]))
        #expect(TestDevice.verdicts(try first.json()) == ["applied"])
        for other in ["17", #"{"table":"thing","id":"good","values":{"name":"B"}}"#, "\(Self.good),\(Self.good)"] {
            let answer = try await client.post("/v1/sync", bytes: Self.batch(1, [other])).json()
            #expect(answer["batch"]["refused"]["code"].string == "batch_mismatch", "\(other)")
            // The pull is answered nevertheless.
            #expect(answer["hasMore"].bool == false)
        }
        let next = try await client.post("/v1/sync", bytes: Self.batch(2, [Self.good]))
        #expect(TestDevice.verdicts(try next.json()) == ["applied"])
        #expect(await weir.stop() == 0)
    }
}
