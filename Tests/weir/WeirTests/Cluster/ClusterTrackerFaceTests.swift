import Foundation
import Testing

/// Clients of the device tracker's document, on Kafka and Postgres with two processes of each role.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterTrackerFaceTests {
    private func withCluster(_ body: (TrackerScene, [UInt16]) async throws -> Void) async throws {
        let cluster = try await WeirCluster.make(
            .init(clock: "log-time", schema: TrackerScene.schema, settings: ["faces": "[tracker]"]))
        let members = try await cluster.startTwoOfEach()
        let ports = members.filter { $0.role == .gateway }.map(\.port)
        try await body(TrackerScene(port: ports[0], folder: try TestFolder()), ports)
        for member in members.reversed() { await member.stop() }
    }

    @Test func devicesOfTwoGatewaysExchangeDocuments() async throws {
        try await withCluster { scene, ports in
            try await scene.exchange(
                try scene.device("phone", port: ports[0]), try scene.device("laptop", port: ports[1]))
            try await scene.writeBetweenAnyTwoSteps()
        }
    }

    @Test func aNewDeviceStartsFromTheStoredFile() async throws {
        try await withCluster { scene, ports in
            try await scene.restore(ports: ports)
            let phone = DeviceClient(port: ports[1], headers: ["X-Sync-Id": "abc", "X-Device-Id": "phone"])
            // Several chunks, read at the other gateway.
            let file = Data((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 3 &+ $0 >> 9) })
            let till = try #require(try await phone.get(DeviceClient.databasePath).headers["downloaded-till"])
            #expect(try await phone.putDatabase(file, till: till).status == 200)
            let laptop = DeviceClient(port: ports[0], headers: ["X-Sync-Id": "abc", "X-Device-Id": "laptop"])
            #expect(try await laptop.get(DeviceClient.databasePath).body == file)
            let rest = try await laptop.get(DeviceClient.databasePath, headers: ["Range": "bytes=600000-1000000"])
            #expect(rest.status == 206 && rest.body == file[600_000...1_000_000])
            #expect(try await laptop.delete(DeviceClient.databasePath).status == 204)
            #expect(try await phone.get(DeviceClient.databasePath).status == 404)
        }
    }

    /// A device whose requests go to either gateway in turn.
    @Test func gatewaysKnowTheSameOfADevice() async throws {
        try await withCluster { scene, ports in
            let phones = ports.map { DeviceClient(port: $0, headers: ["X-Sync-Id": "abc", "X-Device-Id": "phone"]) }
            for number in 0..<4 {
                try await scene.write("laptop", "note", "n\(number)", ["title": "A"])
                let devices = try await phones[number % 2].get("/tracker/devices").json().array
                #expect(devices.map { $0["installationId"] } == ["laptop"])
                try await scene.write("laptop", "note", "late\(number)", ["title": "B"])
                // Up to the head that the other gateway froze.
                let rows = try await phones[1 - number % 2].get("/tracker/note").json().array
                let ids = (0...number).flatMap { $0 < number ? ["n\($0)", "late\($0)"] : ["n\($0)"] }
                #expect(rows.map { $0["serverId"].string } == ids)
            }
        }
    }

    /// A time of the device's own clock, which it names at one gateway and after a lost answer at the other.
    @Test func aTimeThatIsNoProofAtOneGatewayIsNoneAtTheOther() async throws {
        try await withCluster { scene, ports in
            let phones = ports.map { DeviceClient(port: $0, headers: ["X-Sync-Id": "abc", "X-Device-Id": "phone"]) }
            #expect(try await phones[0].get("/tracker/devices").status == 200)
            try await scene.write("laptop", "note", "n1", ["title": "A"])
            let after = TrackerDevice.now()
            try await scene.write("laptop", "comment", "c1", ["text": "B"])
            for phone in phones + phones {
                let devices = try await phone.get("/tracker/devices?after=\(after)").json().array
                #expect(devices.map { $0["installationId"] } == ["laptop"])
                let rows = try await phone.get("/tracker/note?after=\(after)").json().array
                #expect(rows.map { $0["serverId"] } == ["n1"])
            }
        }
    }
}
