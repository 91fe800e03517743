import Seeded
import Testing

/// Devices of three owners that create, change, delete and revive each other's rows, with conflicts.
enum ConflictingWrites {
    private static let owners = ["abc", "def", "ghi"]

    /// Sends `rounds` batches, and drains all devices.
    static func play(port: UInt16, seed: UInt64, rounds: Int) async throws -> [TestDevice] {
        var random = SeededRandom(seed: seed)
        var devices = owners.flatMap { owner in
            (1...2).map { number in
                TestDevice(port: port, syncID: owner, knowledgeID: "\(owner)\(number)", links: links(of: owner))
            }
        }
        for round in 0..<rounds {
            let index = Int.random(in: 0..<devices.count, using: &random)
            let changes = (0..<Int.random(in: 1...20, using: &random)).map { _ in
                change(round, owners.randomElement(using: &random) ?? "abc", &random)
            }
            _ = try await devices[index].sync(changes, atomic: Int.random(in: 0..<8, using: &random) == 0)
        }
        for index in devices.indices { try await devices[index].drain() }
        return devices
    }

    /// A new device that holds the rows of all owners.
    static func fresh(port: UInt16) async throws -> TestDevice {
        var device = TestDevice(port: port, syncID: "abc", knowledgeID: "fresh", links: links(of: "abc"))
        try await device.drain()
        return device
    }

    private static func links(of owner: String) -> String {
        owners.filter { $0 != owner }.map { "\($0):write" }.joined(separator: ",")
    }

    private static func change(_ round: Int, _ owner: String, _ random: inout SeededRandom) -> JSON {
        let id = "r\(Int.random(in: 0..<12, using: &random))"
        let change: JSON =
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                TestDevice.change(id, ["text": JSON("t\(round)")], table: "note")
                    .with("updatedAt", JSON("2024-01-0\(Int.random(in: 1...9, using: &random))T00:00:00Z"))
            case 1: TestDevice.change(id, ["holder": JSON("h\(round)"), "label": "l"], table: "seat")
            case 2: TestDevice.change(id, ["value": JSON("\(round).5")], table: "amount")
            case 3: ["table": "person", "id": JSON(id), "deleted": true]
            default: TestDevice.change(id, ["name": JSON("n\(round)")])
            }
        return change.with("syncId", JSON(owner))
    }
}
