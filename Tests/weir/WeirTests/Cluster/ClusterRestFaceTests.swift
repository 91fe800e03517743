import Foundation
import Testing

/// Clients of the REST Ts/Dirty document, on Kafka and Postgres with two processes of each role.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterRestFaceTests {
    private func withCluster(_ body: (RestScene, [UInt16]) async throws -> Void) async throws {
        let cluster = try await WeirCluster.make(
            .init(schema: RestScene.schema, settings: ["faces": "[rest]"]))
        let members = try await cluster.startTwoOfEach()
        let ports = members.filter { $0.role == .gateway }.map(\.port)
        try await body(RestScene(port: ports[0], folder: try TestFolder()), ports)
        for member in members.reversed() { await member.stop() }
    }

    @Test func devicesOfTwoGatewaysExchangeRecords() async throws {
        try await withCluster { scene, ports in
            let (phone, laptop) = (
                try scene.device("phone", port: ports[0]), try scene.device("laptop", port: ports[1])
            )
            try phone.insert("category", "c1", ["name": "Home"])
            try phone.insert("item", "i1", ["title": "Milk", "category_id": "c1"])
            try await phone.sync()
            try await laptop.sync()
            try laptop.update("item", "i1", ["title": "Oat milk"])
            try laptop.delete("category", "c1")
            try await laptop.sync()
            try await scene.expectEqual([phone, laptop])
            #expect(try phone.row("item", "i1")?["title"] == "Oat milk")
            #expect(phone.conflicts.isEmpty && laptop.conflicts.isEmpty)
            try await scene.writeBetweenAnyTwoSteps()
        }
    }

    /// What one gateway has shown or learned of a device counts at the other.
    @Test func gatewaysKnowTheSameOfADevice() async throws {
        try await withCluster { scene, ports in
            let phones = try ports.map { try scene.device("phone", port: $0) }
            let first = try await scene.write("laptop", "category", "c1", ["name": "A"])
            try await scene.write("laptop", "category", "c2", ["name": "B"])
            // Both have read what is known of the phone.
            for phone in phones { try await phone.request("GET", "/rest/category?ts=0") }
            let newest = try await scene.write("laptop", "category", "c1", ["name": "C"], base: first)
            let refused = try await phones[1].request(
                "PUT", "/rest/category", ["id": "c1", "name": "D", "Ts": JSON(first)])
            #expect(refused.status == 409)
            let next = try await phones[0].request("GET", "/rest/category?ts=\(newest)").json().array
            // The record of the 409 is what the device has at this `ts`.
            #expect(next.compactMap { $0["id"].string } == ["c2"])
            // Shown to one, and then an upload, which is no proof: nothing is sent again by the other.
            let later = try await scene.write("laptop", "category", "c3", ["name": "E"])
            let proof = try await phones[0].request("GET", "/rest/category?ts=\(later)").json().array
            #expect(proof.isEmpty)
            let upload = try await phones[1].request("POST", "/rest/category", ["id": "own", "name": "F"])
            let ts = try #require(try upload.json()["Ts"].int)
            let after = try await phones[1].request("GET", "/rest/category?ts=\(ts)").json().array
            #expect(after.isEmpty)
        }
    }
}
