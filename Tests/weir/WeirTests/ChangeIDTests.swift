import Testing

/// Changes with a `changeId`, over HTTP.
@Suite struct ChangeIDTests {
    private func change(_ id: String, _ name: String, changeID: String? = nil) -> JSON {
        let change = TestDevice.change(id, ["name": JSON(name)], table: "person")
        return changeID.map { change.with("changeId", JSON($0)) } ?? change
    }

    private func sync(
        _ client: DeviceClient, _ batch: Int, _ changes: [JSON], isAtomic: Bool = false, device: String = "k1",
        knowledge: JSON? = nil
    ) async throws -> JSON {
        var request: JSON = [
            "knowledgeId": JSON(device), "batch": JSON(batch), "atomic": JSON(isAtomic),
            "changes": JSON(changes.map(\.value)),
        ]
        if let knowledge { request = request.with("knowledge", knowledge) }
        return try await client.sync(request)
    }

    @Test func aChangeIsAppliedOnceInWhateverBatchItIsSent() async throws {
        let weir = try await TestServer.start()
        let client = DeviceClient(port: weir.port, syncID: "abc")
        let first = try await sync(client, 1, [change("p1", "A", changeID: "c1"), change("p2", "A")])
        #expect(TestDevice.verdicts(first) == ["applied", "applied"])
        #expect(first["changes"].array.isEmpty)
        _ = try await sync(client, 1, [change("p1", "B")], device: "k2")

        let again = try await sync(
            client, 2, [change("p3", "A"), change("p1", "A", changeID: "c1")], knowledge: first["knowledge"])
        #expect(TestDevice.verdicts(again) == ["applied", "applied"])
        #expect(again["batch"]["results"].array[1] == first["batch"]["results"].array[0])
        // The row that a repeat names is sent as it is now; the one that the batch wrote is left out.
        #expect(again["changes"].array.map { $0["id"].string } == ["p1"])
        #expect(again["changes"].array.first?["values"]["name"].string == "B")
        #expect(again["changes"].array.first?["version"].int == 2)

        // Beside a newer change of the same row, too: nothing of the row is left out.
        let both = try await sync(
            client, 3, [change("p1", "C"), change("p1", "A", changeID: "c1")], knowledge: again["knowledge"])
        #expect(both["changes"].array.map { $0["values"]["name"].string } == ["C"])

        let mismatch = try await sync(client, 4, [change("p1", "Z", changeID: "c1"), change("p4", "A")])
        #expect(mismatch["batch"]["results"].array.map { $0["code"].string } == ["change_mismatch", nil])
        #expect(mismatch["batch"]["results"].array[0]["row"]["values"]["name"].string == "C")
        // A batch without a number is repeated without being applied again.
        let unnumbered: JSON = ["knowledgeId": "k1", "changes": [change("p1", "A", changeID: "c1")]]
        #expect(try await client.sync(unnumbered)["batch"]["results"].array == [first["batch"]["results"].array[0]])
        #expect(await weir.stop() == 0)
    }

    @Test func idsAreThoseOfADeviceAndAnOwnerAndOutliveTheServer() async throws {
        let folder = try TestFolder()
        var weir = try await TestServer.start(in: folder)
        let client = DeviceClient(port: weir.port, syncID: "abc", links: "def:write")
        let changes = [change("p1", "A", changeID: "c1"), change("p1", "A", changeID: "c1").with("syncId", "def")]
        let first = try await sync(client, 1, changes)
        #expect(TestDevice.verdicts(first) == ["applied", "applied"])
        #expect(first["batch"]["results"].array.map { $0["version"].int } == [1, 1])
        let other = try await sync(client, 1, changes, device: "k2")
        #expect(other["batch"]["results"].array.map { $0["version"].int } == [2, 2])
        // Its first 16 outcomes are gone by then.
        for batch in 2...20 { _ = try await sync(client, batch, [change("p\(batch)", "A", changeID: "d\(batch)")]) }
        #expect(await weir.stop() == 0)

        weir = try await TestServer.start(in: folder)
        let later = DeviceClient(port: weir.port, syncID: "abc", links: "def:write")
        let again = try await sync(later, 21, changes)
        #expect(again["batch"]["results"].array == first["batch"]["results"].array)
        #expect(await weir.stop() == 0)
        let verify = try await CommandRun.run("verify", "--data", folder.path + "/data", in: folder)
        #expect(verify.output.contains("21 applied changes with a changeId"), "\(verify.output)")
        #expect(verify.output.contains("Equal"))
    }

    @Test func aRefusedChangeMayBeSentAgainUnderItsId() async throws {
        let weir = try await TestServer.start()
        let client = DeviceClient(port: weir.port, syncID: "abc")
        let late = change("p1", "A", changeID: "c1").with("base", 7)
        #expect(try await sync(client, 1, [late])["batch"]["results"].array[0]["code"].string == "row_gone")
        let aborted = try await sync(client, 2, [change("p1", "A", changeID: "c1"), late], isAtomic: true)
        #expect(
            aborted["batch"]["results"].array.map { $0["code"].string } == ["batch_aborted", "change_mismatch"])
        let applied = try await sync(client, 3, [change("p1", "A", changeID: "c1")])
        #expect(TestDevice.verdicts(applied) == ["applied"])
        #expect(applied["batch"]["results"].array[0]["version"].int == 1)
        let bad = try await sync(client, 4, [change("p1", "A").with("changeId", "")])
        #expect(bad["batch"]["results"].array[0]["code"].string == "invalid_change")
        #expect(await weir.stop() == 0)
    }
}
