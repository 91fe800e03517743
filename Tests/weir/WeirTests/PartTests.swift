import Testing

/// Every batch gets its outcome, whatever its parts are.
@Suite struct PartTests {
    private func person(_ id: String, _ name: String) -> JSON { TestDevice.change(id, ["name": JSON(name)]) }

    @Test func twoOwnersPartsInOnePartitionEachGetTheirOutcome() async throws {
        let weir = try await TestServer.start(settings: ["partitions": "1"])
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1", links: "def:write,ghi:write")
        let answer = try await device.sync([
            person("p1", "def's").with("syncId", "def"), person("p2", "own"),
            person("p3", "ghi's").with("syncId", "ghi"),
            person("p4", "def's, too").with("syncId", "def"),
        ])
        // The caller's own part is first, then the others by first appearance; results are in the request's order.
        #expect(answer["batch"]["results"].array.map { $0["timeStamp"].int } == [101, 100, 103, 102])
        let again = try await device.client.sync([
            "knowledgeId": "k1", "batch": 1,
            "changes": [
                person("p1", "def's").with("syncId", "def"), person("p2", "own"),
                person("p3", "ghi's").with("syncId", "ghi"), person("p4", "def's, too").with("syncId", "def"),
            ],
        ])
        #expect(again["batch"] == answer["batch"])
        let looked = try await device.client.get("/v1/batches/1?knowledgeId=k1").json()
        #expect(looked["batch"] == answer["batch"])
        #expect(await weir.stop() == 0)
    }

    @Test func batchesOfRefusedChangesOnlyAndEmptyBatchesGetTheirOutcomes() async throws {
        let weir = try await TestServer.start()
        let client = DeviceClient(port: weir.port, syncID: "abc", links: "def:read")
        let refused = try await client.sync([
            "knowledgeId": "k1", "batch": 1,
            "changes": [
                person("p1", "A").with("table", "people"), person("p1", "A").with("syncId", "def"),
                person("p1", "A").with("syncId", "xyz"), 7, TestDevice.change("p1", ["name": 3]),
                TestDevice.change("", ["name": "A"]), TestDevice.change("p1", ["nick": "A"]),
            ],
        ])
        #expect(
            TestDevice.verdicts(refused) == [
                "refused unknown_table", "refused not_granted", "refused not_granted", "refused invalid_change",
                "refused invalid_value", "refused invalid_change", "refused unknown_column",
            ])
        #expect(refused["batch"]["results"].array.allSatisfy { $0["row"].isNull })
        let empty = try await client.sync(["knowledgeId": "k1", "batch": 2, "changes": []])
        #expect(empty["batch"] == ["batch": 2, "results": []])
        let bare = try await client.sync(["knowledgeId": "k1", "batch": 3])
        #expect(bare["batch"] == ["batch": 3, "results": []])
        let none = try await client.sync(["knowledgeId": "k1"])
        #expect(none.object["batch"] == nil)
        let unnumbered = try await client.sync(["knowledgeId": "k1", "changes": [person("p1", "A")]])
        #expect(TestDevice.verdicts(unnumbered) == ["applied"])
        #expect(await weir.stop() == 0)
    }

    @Test func aResultLargerThanARecordIsSplitAndAnsweredWhole() async throws {
        let weir = try await TestServer.start(settings: ["piece-bytes": "1KiB"])
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1", links: "def:write")
        let changes = (0..<300).map { number in
            switch number % 3 {
            case 0: person("p\(number)", String(repeating: "x", count: 200))
            case 1: person("p\(number)", "def's").with("syncId", "def")
            default: TestDevice.change("p\(number)", ["nick": "unknown"])
            }
        }
        let answer = try await device.sync(changes)
        let expected = (0..<300).map { ["applied", "applied", "refused unknown_column"][$0 % 3] }
        #expect(TestDevice.verdicts(answer) == expected)
        #expect(answer["changes"].array.isEmpty)
        let again = try await device.client.sync([
            "knowledgeId": "k1", "batch": 1, "changes": JSON(changes.map(\.value)),
        ])
        #expect(again["batch"] == answer["batch"])
        // Conflicts show rows that together are larger than any piece.
        var other = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        let conflicts = try await other.sync(
            (0..<300).filter { $0 % 3 == 0 }.map { person("p\($0)", "y").with("ifBase", true) })
        #expect(TestDevice.verdicts(conflicts) == Array(repeating: "conflict", count: 100))
        #expect(conflicts["batch"]["results"][99]["row"]["values"]["name"].string?.count == 200)
        #expect(await weir.stop() == 0)
    }

    @Test func rowsOfOwnersNoLongerGrantedStayBlankInARepeat() async throws {
        let weir = try await TestServer.start()
        var theirs = TestDevice(weir, syncID: "def", knowledgeID: "k9")
        _ = try await theirs.sync([person("p1", "secret")])
        let request: JSON = [
            "knowledgeId": "k1", "batch": 1, "changes": [person("p1", "A").with("syncId", "def").with("ifBase", true)],
        ]
        let granted = try await DeviceClient(port: weir.port, syncID: "abc", links: "def:write").sync(request)
        #expect(granted["batch"]["results"][0]["row"]["values"]["name"].string == "secret")
        let revoked = try await DeviceClient(port: weir.port, syncID: "abc").sync(request)
        #expect(revoked["batch"]["results"] == [["status": "conflict", "row": nil]])
        #expect(await weir.stop() == 0)
    }
}
