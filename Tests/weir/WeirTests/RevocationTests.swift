import Foundation
import Testing

/// Devices are listed, named and shut out, over restarts too.
@Suite(.timeLimit(.minutes(4))) struct RevocationTests {
    @Test func devicesAndRevocationsOutliveARestart() async throws {
        let folder = try TestFolder()
        let weir = try await TestServer.start(in: folder)
        let client = DeviceClient(port: weir.port, syncID: "abc")
        let change = TestDevice.change("p1", ["name": "Ann"])
        for device in ["k1", "k2"] {
            _ = try await client.sync([
                "knowledgeId": JSON(device), "device": ["name": JSON("phone \(device)")], "batch": 1,
                "changes": JSON([change.value]),
            ])
        }
        #expect(try await client.patch("/v1/devices/k2", ["name": "Ann's"]).status == 200)
        #expect(try await client.delete("/v1/devices/k1").status == 204)
        #expect(try await client.post("/v1/pull", ["knowledgeId": "k1"]).status == 403)
        #expect(await weir.stop() == 0)

        let next = try await TestServer.start(in: folder)
        let again = DeviceClient(port: next.port, syncID: "abc")
        let devices = try await again.get("/v1/devices").json()["devices"].array
        #expect(devices.map { $0["name"].string } == ["phone k1", "Ann's"])
        #expect(devices.map { $0["revoked"].bool } == [true, false])
        #expect(try await again.post("/v1/pull", ["knowledgeId": "k1"]).status == 403)
        // What it wrote before is there.
        let pull = try await again.sync(["knowledgeId": "k3"], to: "/v1/pull")
        #expect(pull["changes"].array.count == 1)
        #expect(await next.stop() == 0)
    }

    @Test func anOperatorDecidesForACaller() async throws {
        let folder = try TestFolder()
        let weir = try await TestServer.start(in: folder)
        #expect(
            try await DeviceClient(port: weir.port, syncID: "abc").post("/v1/pull", ["knowledgeId": "k1"]).status == 200
        )
        func device(_ arguments: String...) async throws -> CommandRun {
            try await CommandRun.run(["device"] + arguments + ["--data", folder.path + "/data"], in: folder)
        }
        let busy = try await device("revoke", "abc", "k1")
        #expect(busy.code == 1 && busy.errors.contains("must be stopped first"))
        #expect(await weir.stop() == 0)
        #expect(try await device("revoke", "abc", "*").code == 64)
        #expect(try await device("revoke", "abc", "k1").output == "The device is revoked.\n")
        #expect(try await device("revoke", "abc", "k1").output == "It is revoked already.\n")
        #expect(try await device("revoked").output == "abc\tk1\n")
        let next = try await TestServer.start(in: folder)
        #expect(
            try await DeviceClient(port: next.port, syncID: "abc").post("/v1/pull", ["knowledgeId": "k1"]).status == 403
        )
        #expect(await next.stop() == 0)
        #expect(try await device("allow", "abc", "k1").output == "The device is allowed again.\n")
        #expect(try await device("revoked").output == "")
    }

    /// Two gateways under load: once the second one knows, nothing of the device is accepted, and no other device notices.
    @Test(.enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
    func aRevocationReachesEveryGateway() async throws {
        let cluster = try await WeirCluster.make()
        let members = try await cluster.startTwoOfEach()
        let gateways = members.filter { $0.role == .gateway }
        let clients = gateways.map { DeviceClient(port: $0.port, syncID: "abc") }
        @Sendable func upload(_ device: String, _ batch: Int, to client: DeviceClient) async throws -> Int {
            let change = TestDevice.change("\(device)-\(batch)", ["name": JSON(device)])
            return try await client.post(
                "/v1/sync", ["knowledgeId": JSON(device), "batch": JSON(batch), "changes": JSON([change.value])]
            ).status
        }
        for (number, client) in clients.enumerated() {
            #expect(try await upload("lost", number + 1, to: client) == 200)
            #expect(try await upload("kept", number + 1, to: client) == 200)
        }
        #expect(try await clients[0].delete("/v1/devices/lost").status == 204)
        #expect(try await upload("lost", 3, to: clients[0]) == 403)
        var batch = 3
        while try await upload("lost", batch, to: clients[1]) == 200 {
            #expect(try await upload("kept", batch, to: clients[1]) == 200)
            batch += 1
        }
        for client in clients {
            #expect(try await upload("lost", batch, to: client) == 403)
            #expect(try await client.post("/v1/pull", ["knowledgeId": "lost"]).status == 403)
            #expect(try await upload("kept", batch, to: client) == 200)
        }
        // The registry of the database has both, whichever gateway saw them last.
        for member in gateways { await member.stop() }
        for member in gateways {
            try member.startAgain()
            try await member.untilReady()
        }
        let devices = try await DeviceClient(port: gateways[1].port, syncID: "abc").get("/v1/devices").json()["devices"]
        #expect(devices.array.map { $0["knowledgeId"].string } == ["kept", "lost"])
        #expect(devices.array.map { $0["revoked"].bool } == [false, true])
        #expect(try await upload("lost", batch, to: DeviceClient(port: gateways[1].port, syncID: "abc")) == 403)
        for member in members.reversed() { await member.stop() }
    }
}
