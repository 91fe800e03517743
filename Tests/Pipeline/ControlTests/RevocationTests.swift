import ChangeLog
import Control
import MemoryChangeLog
import Observability
import SyncModel
import SyncWire
import Synchronization
import Testing

/// Owners revoke devices; all processes learn which.
@Suite(.timeLimit(.minutes(5)))
struct RevocationTests {
    private let log = emptyLog()
    private let device = Device(caller: SyncID(unchecked: "abc"), knowledgeID: KnowledgeID(unchecked: "k1"))

    private func opened() async throws -> ControlTopic { try await ControlTopic.open(in: log, proposed: proposed) }

    @Test func theLastDecisionAboutADeviceCounts() async throws {
        let control = try await opened()
        for isRevoked in [true, false, true] {
            try await control.decide(DeviceDecision(device, isRevoked: isRevoked), in: log)
            #expect(control.devices.contains(device) == isRevoked)
            #expect(try await opened().devices.contains(device) == isRevoked)
        }
        let others = [
            Device(caller: device.caller, knowledgeID: KnowledgeID(unchecked: "k2")),
            Device(caller: SyncID(unchecked: "xyz"), knowledgeID: device.knowledgeID),
        ]
        for other in others { #expect(!control.devices.contains(other)) }
        #expect(control.devices.devices(of: device.caller) == [device.knowledgeID])
        #expect(control.devices.devices(of: others[1].caller).isEmpty)
        await log.close()
    }

    @Test func decisionsOfSeveralProcessesAreJoined() async throws {
        let controls = [try await opened(), try await opened()]
        let devices = ["a", "b"].map { Device(caller: device.caller, knowledgeID: KnowledgeID(unchecked: $0)) }
        for (control, device) in zip(controls, devices) {
            try await control.decide(DeviceDecision(device, isRevoked: true), in: log)
        }
        // The second wrote after the first, so it has read both.
        #expect(Set(controls[1].devices.devices(of: device.caller)) == Set(devices.map(\.knowledgeID)))
        await log.close()
    }

    /// A process that has not read the latest decision must not take its own for made.
    @Test func aDecisionIsComparedWithTheEndOfTheTopic() async throws {
        let (first, second) = (try await opened(), try await opened())
        try await first.decide(DeviceDecision(device, isRevoked: true), in: log)
        try await second.decide(DeviceDecision(device, isRevoked: false), in: log)
        // The first one still knows it as revoked.
        #expect(first.devices.contains(device))
        try await first.decide(DeviceDecision(device, isRevoked: true), in: log)
        #expect(try await opened().devices.contains(device))
        await log.close()
    }

    @Test func whatStandsIsNotWrittenAgain() async throws {
        let control = try await opened()
        let before = try await log.range(of: TopicPartition(.control, 0)).end
        for _ in 0..<3 { try await control.decide(DeviceDecision(device, isRevoked: true), in: log) }
        #expect(try await log.range(of: TopicPartition(.control, 0)).end == before + 1)
        await log.close()
    }

    @Test func manyDecisionsAtOnceAreAllMade() async throws {
        let control = try await opened()
        let devices = (0..<200).map {
            Device(caller: SyncID(unchecked: "caller \($0 % 7)"), knowledgeID: KnowledgeID(unchecked: "k\($0)"))
        }
        try await withThrowingTaskGroup(of: Void.self) { [log] group in
            for device in devices {
                group.addTask { try await control.decide(DeviceDecision(device, isRevoked: true), in: log) }
            }
            try await group.waitForAll()
        }
        #expect(Set(control.devices.all) == Set(devices))
        #expect(Set(try await opened().devices.all) == Set(devices))
        await log.close()
    }

    /// The process may not be prepared for it yet.
    @Test func aDecisionMakesNoSchemaVersionKnown() async throws {
        let control = try await opened()
        try await opened().register(one, in: log)
        try await control.decide(DeviceDecision(device, isRevoked: true), in: log)
        #expect(control.schemas.entries.isEmpty)
        #expect(control.devices.contains(device))
        await log.close()
    }

    @Test func aRunningProcessLearnsOfDecisionsAndCallsItsHandler() async throws {
        let control = try await opened()
        let (changes, change) = AsyncStream.makeStream(of: Void.self)
        control.devices.onChange { change.yield() }
        let following = Task { [log] in try await control.follow(log, logger: .disabled) }
        var seen = changes.makeAsyncIterator()
        let other = try await opened()
        try await other.decide(DeviceDecision(device, isRevoked: true), in: log)
        await seen.next()
        #expect(control.devices.contains(device))
        try await other.decide(DeviceDecision(device, isRevoked: false), in: log)
        await seen.next()
        #expect(!control.devices.contains(device))
        following.cancel()
        try await following.value
        await log.close()
    }
}
