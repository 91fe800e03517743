import DeviceRegistry
import Observability
import SyncModel
import Synchronization
import Testing

@testable import Gateway

/// Callers name devices, and each one's positions wait in memory until they are written (I10).
@Suite struct FacePositionRoomTests {
    private let registry = WrittenPositions()
    /// Of eight devices, four may have something to write.
    private let positions: FacePositions

    init() {
        positions = FacePositions(registry, maximumDevices: 8, metrics: GatewayMetrics(), logger: .disabled)
    }

    private func device(_ caller: String, _ number: Int) -> Device {
        Device(caller: SyncID(unchecked: caller), knowledgeID: KnowledgeID(unchecked: "k\(number)"))
    }

    private func raise(_ caller: String, _ numbers: Range<Int>, to value: Int64 = 1) async throws {
        for number in numbers {
            try await positions.raise(["a": value], of: device(caller, number), isDurable: false)
        }
    }

    @Test func madeUpDevicesLeaveRoomForThoseOfOthersAndLoseNothing() async throws {
        try await raise("x", 0..<20)
        // Two have a place; the others are written at once.
        #expect(registry.writes == 18)
        try await raise("y", 0..<1)
        #expect(registry.writes == 18)
        await positions.write()
        #expect(registry.values.count == 21 && registry.values[device("y", 0)] == 1)
        try await raise("x", 20..<22)
        #expect(registry.values.count == 21)
    }

    @Test func aDeviceThatHasAPlaceTakesNoSecondOne() async throws {
        for value in 1...10 { try await raise("x", 0..<2, to: Int64(value)) }
        #expect(registry.writes == 0)
        await positions.write()
        #expect(registry.writes == 1 && registry.values == [device("x", 0): 10, device("x", 1): 10])
    }

    @Test func whatIsWrittenMakesSpaceInMemoryAndIsReadAgain() async throws {
        for number in 0..<40 {
            try await raise("x", number..<number + 1)
            await positions.write()
        }
        #expect(positions.known("a", of: device("x", 39)) == 1 && positions.known("a", of: device("x", 0)) == nil)
        #expect(try await positions.positions(of: device("x", 0), isFresh: false) == ["a": 1])
    }

    @Test func thoseOfACallerAreWrittenBeforeItsDevicesMayBeForgotten() async throws {
        try await raise("x", 0..<2)
        try await raise("y", 0..<1)
        try await positions.write(devicesOf: SyncID(unchecked: "x"))
        #expect(registry.values == [device("x", 0): 1, device("x", 1): 1])
        // They have given their places back.
        try await raise("x", 2..<4)
        #expect(registry.values.count == 2)
        await positions.write()
        #expect(registry.values.count == 5)
    }

    @Test func whatCannotBeWrittenWaitsForTheNextTime() async throws {
        try await raise("x", 0..<2)
        registry.fails.withLock { $0 = true }
        await positions.write()
        // They have their places still.
        await #expect(throws: DeviceRegistryError.self) { try await raise("x", 2..<3) }
        registry.fails.withLock { $0 = false }
        await positions.write()
        #expect(registry.values == [device("x", 0): 1, device("x", 1): 1])
    }
}

/// The positions that were written, of one name.
private final class WrittenPositions: PartialRegistry {
    private struct State {
        var values: [Device: Int64] = [:]
        var writes = 0
    }

    let fails = Mutex(false)
    private let state = Mutex(State())

    var values: [Device: Int64] { state.withLock(\.values) }
    /// How often something was written.
    var writes: Int { state.withLock(\.writes) }

    func positions(of device: Device) async throws(DeviceRegistryError) -> [String: Int64] {
        state.withLock { $0.values[device].map { ["a": $0] } ?? [:] }
    }

    func raise(_ positions: [DevicePosition]) async throws(DeviceRegistryError) {
        if fails.withLock(\.self) { throw DeviceRegistryError("away") }
        state.withLock { state in
            state.writes += 1
            for position in positions { state.values[position.device] = position.value }
        }
    }
}
