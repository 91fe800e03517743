import Foundation
import Fuzzing
import Seeded
import Testing

/// Devices of the REST document and one of the client contract edit the same rows at random, and lose answers.
@Suite(.timeLimit(.minutes(10))) struct RestFleetTests {
    /// Devices whose conflict resolution compares `Ts` get real conflicts alone, the others also of rows below an own upload;
    /// all end equal.
    @Test(arguments: TestLength.seeds(6, short: 2, long: 60), [true, false])
    func devicesEndEqualAndNoEditIsLostButByThePolicy(seed: UInt64, comparesTs: Bool) async throws {
        let folder = try TestFolder()
        let weir = try await RestScene.start(in: folder, [:])
        try await RestFleet(RestScene(port: weir.port, folder: folder), seed: seed, comparesTs).play()
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}

/// The devices of one owner, one after the other.
private final class RestFleet {
    private let scene: RestScene
    private var random: SeededRandom
    private let devices: [RestDevice]
    /// The writes that the server has stored, in order.
    private var writes: [(id: String, writer: String)] = []
    /// For each device the count of ``writes`` when its last complete sync began.
    private var seen: [String: Int] = [:]
    /// Rows of uploads whose answers a device has lost: its next upload of them is a conflict with itself.
    private var unanswered: [String: Set<String>] = [:]
    private var number = 0

    private let comparesTs: Bool

    init(_ scene: RestScene, seed: UInt64, _ comparesTs: Bool) throws {
        self.comparesTs = comparesTs
        self.scene = scene
        random = SeededRandom(seed: seed)
        devices = try (1...3).map { try scene.device("d\($0)") }
        for device in devices {
            device.comparesTs = comparesTs
            device.hasStored = { [unowned self] id, isLost in
                writes.append((id, device.name))
                if isLost { unanswered[device.name, default: []].insert(id) }
            }
        }
    }

    func play() async throws {
        for _ in 0..<80 {
            let device = devices[Int.random(in: 0..<devices.count, using: &random)]
            number += 1
            switch Int.random(in: 0..<10, using: &random) {
            case 0...1: try device.insert("category", "c\(number)", ["name": "\(device.name) \(number)"])
            case 2...3:
                guard let id = try device.ids("category").randomElement(using: &random) else { continue }
                try device.update("category", id, ["name": "\(device.name) \(number)"])
            case 4:
                guard let id = try device.ids("category").randomElement(using: &random) else { continue }
                try device.delete("category", id)
            case 5: try await writeWithTheContract()
            default: try await sync(device)
            }
        }
        for device in devices { device.losesAnswer = { _ in false } }
        try await scene.expectEqual(devices)
    }

    /// A write of a device of `/v1` to any row.
    private func writeWithTheContract() async throws {
        let id = writes.randomElement(using: &random)?.id ?? "first"
        try await scene.write("laptop", "category", id, ["name": JSON("laptop \(number)")])
        writes.append((id, "laptop"))
    }

    /// A sync that may lose an answer, and may meet another device's write between two steps.
    private func sync(_ device: RestDevice) async throws {
        let start = writes.count
        let known = seen[device.name] ?? 0
        let logged = device.conflicts.count
        let repeatable = comparesTs ? [] : device.mayComeAgain("category")
        let lost = random.chance(30) ? Int.random(in: 0..<8, using: &random) : -1
        let other = random.chance(30) ? Int.random(in: 0..<10, using: &random) : -1
        var requests = -1
        device.losesAnswer = { _ in
            requests += 1
            return requests == lost
        }
        device.hook = { [unowned self] moment in if moment == other { try await writeWithTheContract() } }
        do {
            try await device.sync()
            seen[device.name] = start
        } catch is RestDevice.LostAnswer {
            // The next one begins at the first step.
        }
        device.hook = nil
        for id in device.conflicts.dropFirst(logged) {
            let isForeign = writes.dropFirst(known).contains { $0.id == id && $0.writer != device.name }
            let isOwn = unanswered[device.name]?.contains(id) == true
            #expect(
                isForeign || isOwn || repeatable.contains(id),
                "\(device.name) got a conflict about \(id), which no other device wrote")
        }
    }
}
