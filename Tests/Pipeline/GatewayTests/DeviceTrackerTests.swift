import DeviceRegistry
import Observability
import SyncModel
import Synchronization
import Testing

@testable import Gateway

/// What was seen of devices until it is written.
@Suite struct DeviceTrackerTests {
    private let registry = RecordedSightings()
    private let tracker: DeviceTracker

    init() { tracker = DeviceTracker(registry, metrics: GatewayMetrics(), logger: .disabled) }

    private func sighting(_ caller: String, _ id: String, at time: Int64 = 1) -> DeviceSighting {
        let label = String(repeating: "x", count: DeviceDescription.maximumLength)
        return DeviceSighting(
            Device(caller: SyncID(unchecked: caller), knowledgeID: KnowledgeID(unchecked: id)), at: time,
            description: DeviceDescription(name: label, platform: label, appVersion: label))
    }

    /// Made-up devices of one caller take half of the room at most.
    @Test func aCallerLeavesRoomForTheDevicesOfOthers() async throws {
        for number in 0..<100_000 { tracker.add(sighting("many", "k\(number)")) }
        tracker.add(sighting("few", "k1"))
        await tracker.write()
        let written = registry.seen.withLock { $0 }
        #expect(written.contains { $0.device.caller == SyncID(unchecked: "few") })
        let bytes = written.reduce(0) { $0 + $1.memory }
        #expect(bytes <= 64 << 20)
        #expect(written.count > 10_000 && written.count < 100_000)
    }

    @Test func whatFailsIsJoinedWithWhatWasSeenSince() async throws {
        registry.fails.withLock { $0 = true }
        tracker.add(sighting("abc", "k1", at: 1))
        await tracker.write()
        tracker.add(sighting("abc", "k1", at: 5))
        await tracker.write()
        #expect(registry.seen.withLock { $0 }.isEmpty)
        registry.fails.withLock { $0 = false }
        await tracker.write()
        let written = registry.seen.withLock { $0 }
        #expect(written.map { [$0.firstSeen, $0.lastSeen] } == [[1, 5]])
    }

    /// What a write under way has taken is written for a caller that asks.
    @Test func aCallersDevicesAreWrittenWhileAllAreBeingWritten() async throws {
        tracker.add(sighting("abc", "k1"))
        registry.duringNext.withLock { [tracker, registry] in
            $0 = {
                do { try await tracker.write(devicesOf: SyncID(unchecked: "abc")) } catch { Issue.record(error) }
                #expect(registry.seen.withLock { $0.count } == 1)
            }
        }
        await tracker.write()
        #expect(registry.seen.withLock { $0.count } == 2)
    }
}

/// A registry that only remembers what is recorded.
final class RecordedSightings: PartialRegistry {
    let isShared = true
    let seen = Mutex<[DeviceSighting]>([])
    let fails = Mutex(false)
    /// What happens while the next call runs.
    let duringNext = Mutex<(@Sendable () async -> Void)?>(nil)

    func record(_ sightings: [DeviceSighting]) async throws(DeviceRegistryError) {
        if fails.withLock({ $0 }) { throw DeviceRegistryError("away") }
        await duringNext.withLock { $0.take() }?()
        seen.withLock { $0 += sightings }
    }
}
