import Foundation
import Testing

/// A new schema version is registered while every process runs.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct RollingUpgradeTests {
    @Test func runningProcessesUseANewSchemaVersion() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let members = try await cluster.startTwoOfEach()
        let gateways = members.filter { $0.role == .gateway }
        var device = CountingDevice(port: gateways[0].port)
        try await device.write()
        try cluster.folder.write(
            TestServer.schema.replacing("email: text", with: "email: text\n      phone: text"), to: "schema.yaml")
        try await cluster.command("migrate")
        for (number, gateway) in gateways.enumerated() {
            let client = DeviceClient(port: gateway.port, syncID: "abc")
            while true {
                try Task.checkCancellation()
                let answer = try await client.get("/v1/schema")
                if String(decoding: answer.body, as: UTF8.self).contains("phone") { break }
            }
            let change = TestDevice.change("upgraded \(number)", ["phone": "555"])
            let answer = try await Retry.untilAnswered {
                try await client.sync([
                    "knowledgeId": "k2", "batch": JSON(number + 1), "changes": JSON([change.value]),
                ])
            }
            #expect(TestDevice.verdicts(answer) == ["applied"])
        }
        try await device.write()
        for member in members.reversed() { await member.stop() }
        let phones = try await cluster.database.query("SELECT id FROM person WHERE phone = '555' ORDER BY id")
        #expect(phones == [["upgraded 0"], ["upgraded 1"]])
    }
}
