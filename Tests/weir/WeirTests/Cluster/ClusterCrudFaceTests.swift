import Foundation
import Testing

/// Clients of Locify's document, on Kafka and Postgres with two processes of each role.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterCrudFaceTests {
    private func withCluster(_ body: (CrudScene, [UInt16]) async throws -> Void) async throws {
        let cluster = try await WeirCluster.make(
            .init(clock: "log-time", schema: CrudScene.schema, settings: ["faces": "[crud]"]))
        let members = try await cluster.startTwoOfEach()
        let ports = members.filter { $0.role == .gateway }.map(\.port)
        try await body(CrudScene(port: ports[0], folder: try TestFolder(), hasSeveralGateways: true), ports)
        for member in members.reversed() { await member.stop() }
    }

    @Test func devicesOfTwoGatewaysExchangeRecords() async throws {
        try await withCluster { scene, ports in
            try await scene.exchange(
                try scene.device("phone", port: ports[0]), try scene.device("laptop", port: ports[1]))
            try await scene.writeBetweenAnyTwoSteps(step: 4)
        }
    }

    /// Each flow with an owner of its own, and a device at each gateway.
    @Test func whatIsLostOrMadeOfflineIsSentLater() async throws {
        try await withCluster { scene, ports in
            var scene = scene
            func play(_ owner: String, _ flow: (CrudScene, CrudDevice, CrudDevice) async throws -> Void) async throws {
                scene.owner = owner
                try await flow(
                    scene, try scene.device("phone of \(owner)", port: ports[0]),
                    try scene.device("laptop of \(owner)", port: ports[1]))
            }
            try await play("ann") { try await $0.failOnline(.losesRequest, $1, $2) }
            try await play("bob") { try await $0.failOnline(.losesAnswer, $1, $2) }
            try await play("eve") { try await $0.editOffline($1, $2) }
            try await play("zoe") { try await $0.loseAnswersOfASync($1, $2) }
        }
    }

    /// The record's creation time is the same from every process.
    @Test func gatewaysShowTheSameRecords() async throws {
        try await withCluster { scene, ports in
            let clients = ports.map { scene.client("phone", port: $0) }
            for number in 0..<6 {
                let (here, there) = (clients[number % 2], clients[1 - number % 2])
                let made = try await here.post("/api/category", ["id": JSON("c\(number)"), "name": "A"])
                #expect((200...201).contains(made.status))
                let record = try made.json()
                #expect(try await here.get("/api/category").json().array.last == record)
                let changed = try await there.send("PUT", "/api/category/c\(number)", ["name": "B"] as JSON?)
                #expect(changed.status == 200)
                #expect(try changed.json()["created_at"] == record["created_at"])
            }
        }
    }
}
