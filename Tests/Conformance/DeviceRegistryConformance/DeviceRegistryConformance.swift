import DeviceRegistry
import SyncModel
import Testing

/// The behaviour of every registry of devices, as cases that use only the port.
package enum DeviceRegistryConformance {
    /// The devices of a caller that the registry of a case keeps.
    package static let maximumPerCaller = 3

    package static let cases = [
        ConformanceCase("a device is found as it was seen") { registry in
            let sighting = DeviceSighting(
                device("k1"), at: 1_700_000_000_123_456, isUpload: true,
                description: DeviceDescription(name: "Ann's phone", platform: "Android 17", appVersion: "2.1 (7)"),
                knowledge: [caller: TimeStamp(9_007_199_254_740_991), SyncID(unchecked: "linked"): .zero])
            try await registry.record([sighting])
            let found = try #require(try await registry.device(device("k1")))
            #expect(
                found
                    == RegisteredDevice(
                        KnowledgeID(unchecked: "k1"), description: sighting.description,
                        firstSeen: 1_700_000_000_123_456, lastSeen: 1_700_000_000_123_456,
                        lastUpload: 1_700_000_000_123_456, knowledge: sighting.knowledge ?? [:]))
            #expect(try await registry.devices(of: caller, after: nil, limit: 10) == [found])
            #expect(try await registry.device(device("k2")) == nil)
        },
        ConformanceCase("sightings are joined in any order") { registry in
            let seen = [
                DeviceSighting(
                    device("k1"), at: 20, isUpload: true, description: DeviceDescription(name: "new", appVersion: "2"),
                    knowledge: [caller: TimeStamp(7)]),
                DeviceSighting(device("k1"), at: 30),
                DeviceSighting(
                    device("k1"), at: 10, isUpload: true, description: DeviceDescription(platform: "Linux"),
                    knowledge: [caller: TimeStamp(5)]),
            ]
            for sighting in seen { try await registry.record([sighting]) }
            // Again, as after an error.
            try await registry.record([seen[0]])
            let found = try #require(try await registry.device(device("k1")))
            #expect([found.firstSeen, found.lastSeen, found.lastUpload] == [10, 30, 20])
            #expect(found.knowledge == [caller: TimeStamp(7)])
            #expect(found.description == DeviceDescription(name: "new", platform: "Linux", appVersion: "2"))
        },
        ConformanceCase("a given name counts before the reported one until it is taken back") { registry in
            #expect(try await registry.rename(device("k1"), to: "mine") == false)
            try await registry.record([
                DeviceSighting(device("k1"), at: 1, description: DeviceDescription(name: "reported"))
            ])
            #expect(try await registry.rename(device("k1"), to: "mine"))
            try await registry.record([
                DeviceSighting(device("k1"), at: 2, description: DeviceDescription(name: "reported again"))
            ])
            let named = try #require(try await registry.device(device("k1")))
            #expect(named.name == "mine")
            #expect(try await registry.rename(device("k1"), to: nil))
            #expect(try await registry.device(device("k1"))?.name == "reported again")
        },
        ConformanceCase("callers are apart, and devices are listed by their bytes") { registry in
            let ids = ["B", "a", "ä"]
            try await registry.record(ids.map { DeviceSighting(device($0), at: 1) })
            try await registry.record([DeviceSighting(device("a", of: "other"), at: 2)])
            let all = try await registry.devices(of: caller, after: nil, limit: 10)
            #expect(all.map(\.knowledgeID.text) == ids)
            #expect(all.map(\.lastSeen) == [1, 1, 1])
            let rest = try await registry.devices(of: caller, after: KnowledgeID(unchecked: "B"), limit: 1)
            #expect(rest.map(\.knowledgeID.text) == ["a"])
            #expect(try await registry.devices(of: SyncID(unchecked: "nobody"), after: nil, limit: 10).isEmpty)
        },
        ConformanceCase("of too many devices those not seen for longest are forgotten") { registry in
            try await registry.record((1...3).map { DeviceSighting(device("k\($0)"), at: Int64($0)) })
            try await registry.record([
                DeviceSighting(device("k1"), at: 9), DeviceSighting(device("x", of: "o"), at: 0),
            ])
            try await registry.record([DeviceSighting(device("k4"), at: 10), DeviceSighting(device("k5"), at: 11)])
            let left = try await registry.devices(of: caller, after: nil, limit: 10)
            #expect(left.map(\.knowledgeID.text) == ["k1", "k4", "k5"])
            #expect(try await registry.device(device("x", of: "o")) != nil)
        },
        ConformanceCase("positions only rise, each by its name and device") { registry in
            let (first, second) = (device("k1"), device("k1", of: "other"))
            #expect(try await registry.positions(of: first) == [:])
            let name = String(repeating: "n", count: DevicePosition.maximumNameLength)
            try await registry.raise([])
            try await registry.raise([
                DevicePosition(first, name: "a", 5), DevicePosition(first, name: name, .max),
                DevicePosition(second, name: "a", 7),
            ])
            try await registry.raise([DevicePosition(first, name: "a", 3), DevicePosition(second, name: "a", 9)])
            try await registry.raise([DevicePosition(first, name: "A", -1)])
            #expect(try await registry.positions(of: first) == ["a": 5, name: .max, "A": -1])
            #expect(try await registry.positions(of: second) == ["a": 9])
            #expect(try await registry.positions(of: device("k2")) == [:])
        },
        ConformanceCase("the positions of many devices are raised and read at the same time") { registry in
            try await withThrowingTaskGroup(of: [String: Int64].self) { group in
                for number in 0..<1000 {
                    group.addTask {
                        let device = device("k", of: "caller \(number)")
                        try await registry.raise([DevicePosition(device, name: "a", 1)])
                        return try await registry.positions(of: device)
                    }
                }
                for try await positions in group { #expect(positions == ["a": 1]) }
            }
        },
        ConformanceCase("a forgotten device has no positions") { registry in
            try await registry.record((1...3).map { DeviceSighting(device("k\($0)"), at: Int64($0)) })
            try await registry.raise((1...3).map { DevicePosition(device("k\($0)"), name: "a", 1) })
            try await registry.record([DeviceSighting(device("k4"), at: 10)])
            #expect(try await registry.positions(of: device("k1")) == [:])
            #expect(try await registry.positions(of: device("k2")) == ["a": 1])
        },
        ConformanceCase("many devices are written at once") { registry in
            let sightings = (0..<2500).map { DeviceSighting(device("k", of: "caller \($0)"), at: Int64($0)) }
            try await registry.record(sightings)
            for number in [0, 999, 1000, 2499] {
                #expect(try await registry.device(device("k", of: "caller \(number)"))?.lastSeen == Int64(number))
            }
        },
    ]

    private static let caller = SyncID(unchecked: "caller")

    private static func device(_ id: String, of caller: String = "caller") -> Device {
        Device(caller: SyncID(unchecked: caller), knowledgeID: KnowledgeID(unchecked: id))
    }
}

/// One behaviour that a registry must have.
package struct ConformanceCase: Sendable, CustomStringConvertible {
    package let description: String
    private let body: @Sendable (any DeviceRegistry) async throws -> Void

    init(_ description: String, _ body: @escaping @Sendable (any DeviceRegistry) async throws -> Void) {
        self.description = description
        self.body = body
    }

    /// Runs the case on an empty registry, and closes it.
    package func run(_ registry: any DeviceRegistry) async throws {
        let outcome: Result<Void, any Error>
        do {
            try await body(registry)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await registry.close()
        try outcome.get()
    }
}
