import Testing

/// What an owner may have, over HTTP.
@Suite struct QuotaTests {
    private func codes(_ answer: JSON) -> [String] {
        answer["batch"]["results"].array.map { $0["code"].string ?? $0["status"].string ?? "" }
    }

    private func person(_ id: String, _ name: String) -> JSON { TestDevice.change(id, ["name": JSON(name)]) }

    @Test func creationsAboveTheQuotaAreRefusedAndDeletesMakeRoom() async throws {
        let folder = try TestFolder()
        var weir = try await TestServer.start(
            in: folder, settings: ["limits.max-owner-rows": "3", "limits.max-owner-bytes": "40"])
        let schema = try await DeviceClient(port: weir.port, syncID: "abc").get("/v1/schema").json()
        #expect(schema["limits"]["maxOwnerRows"].int == 3 && schema["limits"]["maxOwnerBytes"].int == 40)
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let first = try await device.sync((1...4).map { person("p\($0)", "A") })
        #expect(codes(first) == ["applied", "applied", "applied", "quota_exceeded"])
        #expect(first["batch"]["results"].array.last?["row"].isNull == true)
        // Another owner has a quota of its own.
        var other = TestDevice(weir, syncID: "def", knowledgeID: "k1")
        #expect(codes(try await other.sync([person("p1", "A")])) == ["applied"])
        // The names have 9 bytes with their quotes.
        let long = String(repeating: "x", count: 33)
        #expect(codes(try await device.sync([person("p1", long)])) == ["quota_exceeded"])
        let smaller = String(repeating: "x", count: 32)
        #expect(
            codes(try await device.sync([person("p1", smaller), person("p2", "BB")])) == ["applied", "quota_exceeded"])
        let delete = person("p2", "A").with("values", [:]).with("deleted", true)
        #expect(codes(try await device.sync([delete, person("p4", "A")])) == ["applied", "applied"])
        #expect(await weir.stop() == 0)

        // The quota is that of the gateway that accepts the batch, and what was counted outlives the process.
        weir = try await TestServer.start(in: folder, settings: ["limits.max-owner-rows": "4"])
        device.move(to: weir.port)
        #expect(
            codes(try await device.sync([person("p5", "A"), person("p6", "A")])) == ["applied", "quota_exceeded"])
        #expect(await weir.stop() == 0)
        let verify = try await CommandRun.run("verify", "--data", folder.path + "/data", in: folder)
        #expect(verify.output.contains("usage of 1 owners") && verify.output.contains("Equal"), "\(verify.output)")
    }
}
