import Testing

/// Each rule for one change, over HTTP.
@Suite struct RuleTests {
    private func change(_ id: String, _ values: JSON, _ table: String) -> JSON {
        TestDevice.change(id, values, table: table)
    }

    @Test func aRepeatGetsTheFirstOutcomeAndOtherContentIsAMismatch() async throws {
        let weir = try await TestServer.start()
        let client = DeviceClient(port: weir.port, syncID: "abc")
        let request: JSON = [
            "knowledgeId": "k1", "batch": 1, "changes": [change("p1", ["name": "A"], "person")],
        ]
        let first = try await client.sync(request)
        let again = try await client.sync(request)
        #expect(again["batch"] == first["batch"])
        // A repeat leaves nothing out of the pull.
        #expect(first["changes"].array.isEmpty)
        #expect(again["changes"].array.count == 1)
        let respelled = try await client.sync([
            "batch": 1, "knowledgeId": "k1",
            "changes": [["values": ["name": "A"], "id": "p1", "deleted": false, "table": "person"]],
        ])
        #expect(respelled["batch"] == first["batch"])
        let other = try await client.sync(request.with("changes", [change("p1", ["name": "B"], "person")]))
        #expect(other["batch"] == ["batch": 1, "refused": other["batch"]["refused"]])
        #expect(other["batch"]["refused"]["code"].string == "batch_mismatch")
        let atomic = try await client.sync(request.with("atomic", true))
        #expect(atomic["batch"]["refused"]["code"].string == "batch_mismatch")
        #expect(await weir.stop() == 0)
    }

    @Test func aLowerNumberWithoutAnOutcomeIsExpiredAndNumbersMaySkip() async throws {
        let weir = try await TestServer.start()
        let client = DeviceClient(port: weir.port, syncID: "abc")
        for batch in 3...20 {
            let answer = try await client.sync(
                [
                    "knowledgeId": "k1", "batch": JSON(batch * 2),
                    "changes": [change("p\(batch)", ["name": "A"], "person")],
                ])
            #expect(TestDevice.verdicts(answer) == ["applied"])
        }
        for (batch, code) in [(5, "outcome_expired"), (6, "outcome_expired"), (8, "outcome_expired")] {
            let answer = try await client.sync(
                ["knowledgeId": "k1", "batch": JSON(batch), "changes": [change("p3", ["name": "A"], "person")]])
            #expect(answer["batch"]["refused"]["code"].string == code, "batch \(batch)")
        }
        let kept = try await client.get("/v1/batches/10?knowledgeId=k1")
        #expect(kept.status == 200)
        #expect(try kept.json()["batch"]["batch"].int == 10)
        #expect(try await client.get("/v1/batches/8?knowledgeId=k1").status == 404)
        #expect(await weir.stop() == 0)
    }

    @Test func baseIsAConditionUnderCheckBaseAndWithIfBaseButARunOfOwnVersionsIsNoConflict() async throws {
        let weir = try await TestServer.start()
        var one = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        var two = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        let made = try await one.sync([change("s1", ["label": "x"], "seat")])
        let base = made["batch"]["results"][0]["timeStamp"]
        // Two more edits on the same base, with only the device's own versions in between.
        for holder in ["a", "b"] {
            let answer = try await one.sync([change("s1", ["holder": JSON(holder)], "seat").with("base", base)])
            #expect(TestDevice.verdicts(answer) == ["applied"])
        }
        let stale = try await two.sync([change("s1", ["holder": "c"], "seat").with("base", base)])
        #expect(TestDevice.verdicts(stale) == ["conflict"])
        #expect(stale["batch"]["results"][0]["row"]["values"]["holder"].string == "b")
        let missing = try await two.sync([change("s1", ["holder": "c"], "seat")])
        #expect(TestDevice.verdicts(missing) == ["conflict"])
        let delete = try await two.sync([change("s1", [:], "seat").with("deleted", true).with("base", base)])
        #expect(TestDevice.verdicts(delete) == ["conflict"])
        let current = try await two.sync([
            change("s1", ["holder": "c"], "seat").with("base", stale["batch"]["results"][0]["row"]["timeStamp"])
        ])
        #expect(TestDevice.verdicts(current) == ["applied"])
        _ = try await one.sync([change("p1", ["name": "A"], "person")])
        let ifBase = try await two.sync([change("p1", ["name": "B"], "person").with("ifBase", true)])
        #expect(TestDevice.verdicts(ifBase) == ["conflict"])
        #expect(await weir.stop() == 0)
    }

    @Test func aRowThatIsGoneAndACreationWithoutARequiredColumnAreRefused() async throws {
        let weir = try await TestServer.start()
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let answer = try await device.sync([
            change("p9", ["name": "A"], "person").with("base", 5), change("s9", ["holder": "x"], "seat"),
            change("p9", [:], "person").with("base", 5).with("deleted", true),
        ])
        #expect(TestDevice.verdicts(answer) == ["refused row_gone", "refused missing_value", "applied"])
        let absent = answer["batch"]["results"][2]
        #expect(absent == ["status": "applied", "timeStamp": 0, "version": 0, "knowledgeId": nil])
        #expect(answer["batch"]["results"][0]["row"].isNull)
        #expect(await weir.stop() == 0)
    }

    @Test func deletesStayDeletedUntilABaseNamesTheTombstone() async throws {
        let weir = try await TestServer.start()
        var one = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        var two = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        _ = try await one.sync([change("p1", ["name": "A", "email": "a@b"], "person")])
        try await two.drain()
        let deleted = try await one.sync([change("p1", [:], "person").with("deleted", true)])
        let tombstone = deleted["batch"]["results"][0]["timeStamp"]
        let again = try await one.sync([change("p1", [:], "person").with("deleted", true)])
        #expect(again["batch"]["results"][0] == deleted["batch"]["results"][0])
        let late = try await two.sync([change("p1", ["name": "B"], "person")])
        #expect(TestDevice.verdicts(late) == ["deleted"])
        try await one.drain()
        #expect(one.rows["person abc p1"] == nil)
        #expect(one.rows.values.first?["values"]["name"].string == "B")
        #expect(one.visible.isEmpty && two.visible.isEmpty)
        // The tombstone has a newer version now: its old timeStamp revives nothing.
        let stale = try await two.sync([change("p1", ["name": "C"], "person").with("base", tombstone)])
        #expect(TestDevice.verdicts(stale) == ["deleted"])
        let newest = stale["batch"]["results"][0]["timeStamp"]
        let revived = try await two.sync([change("p1", ["name": "D"], "person").with("base", newest)])
        #expect(TestDevice.verdicts(revived) == ["applied"])
        let result = revived["batch"]["results"][0]
        #expect(result["knowledgeId"].string == "k1" && result["version"].int == 5)
        // The row is created with defaults: the tombstone's email is dropped, and the answer shows that.
        #expect(revived["changes"][0]["values"] == ["name": "D", "email": nil])
        try await one.drain()
        #expect(one.visible.values.map(\.self) == [["name": "D"]])
        #expect(await weir.stop() == 0)
    }

    @Test func theLaterUpdatedAtWinsUnderLastWriteWins() async throws {
        let weir = try await TestServer.start()
        var one = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        var two = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        let at = { (change: JSON, time: String) in change.with("updatedAt", JSON(time)) }
        _ = try await one.sync([at(change("n1", ["text": "first"], "note"), "2024-01-02T00:00:00Z")])
        let older = try await two.sync([at(change("n1", ["text": "older"], "note"), "2024-01-01T00:00:00Z")])
        #expect(TestDevice.verdicts(older) == ["conflict"])
        let equal = try await two.sync([at(change("n1", ["text": "equal"], "note"), "2024-01-02T00:00:00Z")])
        #expect(TestDevice.verdicts(equal) == ["applied"])
        let ownOlder = try await two.sync([at(change("n1", ["text": "own"], "note"), "2023-01-01T00:00:00Z")])
        #expect(TestDevice.verdicts(ownOlder) == ["applied"])
        try await one.drain()
        let row = try #require(one.rows.values.first)
        #expect(row["values"]["text"].string == "own")
        #expect(row["updatedAt"].string == "2024-01-02T00:00:00.000000Z")
        // A time in the future counts as the log's time.
        _ = try await one.sync([at(change("n1", ["text": "future"], "note"), "9000-01-01T00:00:00Z")])
        let next = try await two.sync([change("n1", ["text": "now"], "note")])
        #expect(TestDevice.verdicts(next) == ["applied"])
        #expect(await weir.stop() == 0)
    }

    @Test func twoDevicesThatEditDifferentColumnsBothEndWithBoth() async throws {
        let weir = try await TestServer.start()
        var one = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        var two = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        _ = try await one.sync([change("p1", ["name": "A", "email": "a"], "person")])
        try await two.drain()
        _ = try await one.sync([change("p1", ["name": "B"], "person")])
        // The answer has the merged row, too, since the device did not hold the version before (I6).
        let merged = try await two.sync([change("p1", ["email": "b"], "person")])
        #expect(merged["changes"][0]["values"] == ["name": "B", "email": "b"])
        try await one.drain()
        #expect(one.visible == two.visible)
        #expect(one.visible.values.map(\.self) == [["name": "B", "email": "b"]])
        // The next edit is based on the newest version, so the answer omits the row.
        let own = try await two.sync([change("p1", ["email": "c"], "person")])
        #expect(own["changes"].array.isEmpty)
        #expect(await weir.stop() == 0)
    }

    @Test func aValueThatWasAlteredIsSentBack() async throws {
        let weir = try await TestServer.start()
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let answer = try await device.sync([
            change("a1", ["value": "1.5"], "amount"), change("a2", ["value": "1.50"], "amount"),
            change("n1", ["text": "x"], "note").with("updatedAt", "2024-01-01T00:00:00.000000Z"),
        ])
        #expect(answer["changes"].array.map { $0["id"] }.sortedByText == ["a1", "n1"])
        #expect(device.rows.values.contains { $0["values"]["value"].string == "1.50" })
        #expect(device.rows.values.contains { $0["values"]["color"].string == "gray" })
        #expect(await weir.stop() == 0)
    }

    @Test func anAtomicBatchAppliesNothingOfAnOwnerWhoseChangesAreRefusedOrInConflict() async throws {
        let weir = try await TestServer.start()
        var other = TestDevice(weir, syncID: "def", knowledgeID: "k9")
        _ = try await other.sync([change("p1", ["name": "theirs"], "person")])
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1", links: "def:write")
        let answer = try await device.sync(
            [
                change("p1", ["name": "A"], "person"), change("p2", ["nick": "A"], "person"),
                change("p3", ["name": "C"], "person").with("syncId", "def"),
                change("p1", ["name": "D"], "person").with("syncId", "def").with("ifBase", true).with("base", 0),
                change("p4", ["name": "E"], "person").with("syncId", "def").with("ifBase", true),
            ], atomic: true)
        #expect(
            TestDevice.verdicts(answer) == [
                "refused batch_aborted", "refused unknown_column", "refused batch_aborted", "conflict",
                "refused batch_aborted",
            ])
        #expect(answer["batch"]["results"][3]["row"]["values"]["name"].string == "theirs")
        #expect(answer["batch"]["results"][4]["row"].isNull)
        let good = try await device.sync(
            [
                change("p1", ["name": "A"], "person"), change("p3", ["name": "C"], "person").with("syncId", "def"),
                change("p5", ["name": "B"], "person").with("syncId", "xyz"),
            ], atomic: true)
        #expect(TestDevice.verdicts(good) == ["applied", "applied", "refused not_granted"])
        #expect(await weir.stop() == 0)
    }
}
