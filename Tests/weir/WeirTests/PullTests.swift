import Fuzzing
import Seeded
import Testing

/// A pull is exact (I6), and a drained device equals the server (I7), over HTTP.
@Suite struct PullTests {
    private func person(_ id: String, _ name: String) -> JSON { TestDevice.change(id, ["name": JSON(name)]) }

    @Test func anEditThatWasOrderedBetweenUploadAndPullIsReceived() async throws {
        let weir = try await TestServer.start()
        var other = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        let client = DeviceClient(port: weir.port, syncID: "abc")
        let upload: JSON = ["knowledgeId": "k1", "batch": 1, "changes": [person("p1", "A")]]
        let answer = try await client.post("/v1/upload", upload, headers: ["Prefer": "wait=10"])
        #expect(answer.status == 200)
        let edited = try await other.sync([TestDevice.change("p1", ["email": "b"])])
        #expect(TestDevice.verdicts(edited) == ["applied"])
        // k1 knows only the timeStamp of its own change.
        let pull = try await client.sync(["knowledgeId": "k1", "knowledge": [], "include": [1]], to: "/v1/pull")
        #expect(pull["changes"].array.count == 1)
        #expect(pull["changes"][0]["values"] == ["name": "A", "email": "b"])
        #expect(pull["changes"][0]["timeStamp"] == edited["batch"]["results"][0]["timeStamp"])
        #expect(await weir.stop() == 0)
    }

    @Test func linkingAnOwnerSkipsNothingThatAKnownDeviceWroteThere() async throws {
        let weir = try await TestServer.start()
        var writer = TestDevice(weir, syncID: "abc", knowledgeID: "k1", links: "def:write")
        _ = try await writer.sync([person("d1", "first").with("syncId", "def"), person("p1", "own")])
        // Knows k1 of abc up to the newest timeStamp, and is linked to def for the first time.
        var reader = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        try await reader.drain()
        var linked = TestDevice(weir, syncID: "abc", knowledgeID: "k2", links: "def:read")
        linked.knowledge = reader.knowledge
        let answer = try await linked.sync()
        #expect(answer["changes"].array.map { $0["id"] } == ["d1"])
        #expect(answer["changes"][0]["knowledgeId"].string == "k1")
        #expect(await weir.stop() == 0)
    }

    @Test(arguments: TestLength.seeds(2, short: 1, long: 60)) func cutPagesLoseNothingWhateverIsWrittenMeanwhile(
        seed: UInt64
    )
        async throws
    {
        let weir = try await TestServer.start()
        var random = SeededRandom(seed: seed)
        var writers = ["k1", "k2", "k3"].map { TestDevice(weir, syncID: "abc", knowledgeID: $0) }
        for round in 0..<3 {
            for index in writers.indices {
                let changes = (0..<20).map { person("p\((index * 20 + $0 + round * 7) % 60)", "r\(round)") }
                _ = try await writers[index].sync(changes)
            }
        }
        var reader = TestDevice(weir, syncID: "abc", knowledgeID: "k9")
        var last = 0
        for _ in 0..<200 {
            let answer = try await reader.sync(limit: Int.random(in: 1...7, using: &random))
            let stamps = answer["changes"].array.compactMap { $0["timeStamp"].int }
            #expect(stamps == stamps.sorted(), "rows come in the order of their timeStamps")
            if answer["hasMore"].bool == true, let highest = stamps.last {
                let entries = answer["knowledge"].array.compactMap { $0["lastTimeStamp"].int }
                #expect(entries.allSatisfy { $0 <= highest || $0 <= last }, "no entry passes the last row sent")
                last = max(last, highest)
            }
            if answer["hasMore"].bool == false { break }
            let writer = Int.random(in: 0..<3, using: &random)
            let id = "p\(Int.random(in: 0..<80, using: &random))"
            let delete = Int.random(in: 0..<4, using: &random) == 0
            _ = try await writers[writer].sync([
                delete ? TestDevice.change(id, [:]).with("deleted", true) : person(id, "x")
            ])
        }
        try await reader.drain(limit: 5)
        var fresh = TestDevice(weir, syncID: "abc", knowledgeID: "k10")
        try await fresh.drain()
        #expect(reader.visible == fresh.visible)
        for index in writers.indices {
            try await writers[index].drain()
            #expect(writers[index].visible == fresh.visible)
        }
        #expect(await weir.stop() == 0)
    }

    @Test func aCompactVectorIsOneNumberForADrainedOwner() async throws {
        let weir = try await TestServer.start()
        var one = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        _ = try await one.sync([person("p1", "A"), person("p2", "B")])
        let client = DeviceClient(port: weir.port, syncID: "abc", links: nil)
        let first = try await client.sync(["knowledgeId": "k2", "compact": true], to: "/v1/pull")
        #expect(first["knowledge"] == [["syncId": "abc", "knowledgeId": "*", "lastTimeStamp": 101]])
        _ = try await one.sync([person("p1", "C")])
        let second = try await client.sync(
            ["knowledgeId": "k2", "compact": true, "knowledge": first["knowledge"]], to: "/v1/pull")
        #expect(second["changes"].array.map { $0["id"] } == ["p1"])
        #expect(second["knowledge"][0]["lastTimeStamp"].int == 102)
        #expect(await weir.stop() == 0)
    }

    @Test func aVectorBeyondTheHistoryMustResyncAndAnotherEpochAppliesNothing() async throws {
        let weir = try await TestServer.start()
        var one = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        _ = try await one.sync([person("p1", "A")])
        let client = DeviceClient(port: weir.port, syncID: "abc")
        let beyond = try await client.sync([
            "knowledgeId": "k2", "knowledge": [["syncId": "abc", "knowledgeId": "k1", "lastTimeStamp": 5000]],
        ])
        #expect(beyond["resync"] == [["syncId": "abc", "reason": "history_changed"]])
        #expect(beyond["changes"].array.isEmpty && beyond["knowledge"].array.isEmpty)
        let other = try await client.sync([
            "knowledgeId": "k2", "epoch": "another", "batch": 1, "changes": [person("p2", "B")],
            "knowledge": [
                ["syncId": "abc", "knowledgeId": "k1", "lastTimeStamp": 100],
                ["syncId": "xyz", "knowledgeId": "k7", "lastTimeStamp": 1],
            ],
        ])
        #expect(other["batch"]["refused"]["code"].string == "history_changed")
        #expect(other["resync"] == [["syncId": "abc", "reason": "history_changed"]])
        #expect(other["revoked"] == ["xyz"])
        let again = try await client.sync(["knowledgeId": "k2", "batch": 1, "changes": [person("p2", "B")]])
        #expect(TestDevice.verdicts(again) == ["applied"])
        #expect(await weir.stop() == 0)
    }

    @Test func aLongPollIsAnsweredWhenSomethingMovesAndAWatcherIsTold() async throws {
        let weir = try await TestServer.start()
        var one = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let client = DeviceClient(port: weir.port, syncID: "abc")
        async let waiting = client.sync(["knowledgeId": "k2", "wait": 50], to: "/v1/pull")
        _ = try await one.sync([person("p1", "A")])
        #expect(try await waiting["changes"].array.map { $0["id"] } == ["p1"])
        #expect(await weir.stop() == 0)
    }
}
