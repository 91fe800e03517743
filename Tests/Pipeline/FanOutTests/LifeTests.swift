import FanOut
import FanOutLink
import Foundation
import PartitionSupervision
import SyncModel
import Testing

/// How a fan-out begins and ends.
@Suite struct LifeTests {
    private func fanOut(_ world: World, _ folder: String, _ events: EventLog) -> TestFanOut {
        TestFanOut(
            StageContext(log: world.log, history: world.history, schemas: KnownSchemas(world.schemas)),
            partitions: [0], store: world.store, configuration: FanOutConfiguration(directory: folder),
            observer: events)
    }

    @Test func isNotReadyBeforeItRunsAndClosedAfterwards() async throws {
        let world = World()
        try await withFolder { folder in
            let events = EventLog()
            let fanOut = fanOut(world, folder + "/a/b", events)
            let request = PagePull(
                owners: [OwnerPull(owner: "abc", knowledge: OwnerKnowledge())], limit: 1, maximumBytes: 1)
            await #expect(throws: FanOutError.notReady("the stream is being opened")) {
                try await fanOut.pull(request, within: .zero)
            }
            let run = Task { try await fanOut.run() }
            await events.ready()
            try world.upload([.person("p1")])
            try await events.applied(upTo: 1)
            #expect(try await fanOut.pull(request, within: .zero).count == 1)
            run.cancel()
            try await run.value
            #expect(events.events.last == .stopped(problem: nil))
            await #expect(throws: FanOutError.closed) { try await fanOut.pull(request, within: .zero) }
            #expect(fanOut.idlePage(request.owners[0]) == nil)
            // Everything is in the one file, and nothing waits.
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/a/b") == ["fanout-0.db"])
            await fanOut.stop()
        }
    }

    @Test func isNeverRunOnceItWasStopped() async throws {
        let world = World()
        try await withFolder { folder in
            let events = EventLog()
            let fanOut = fanOut(world, folder, events)
            await fanOut.stop()
            try await fanOut.run()
            #expect(events.events.isEmpty)
        }
    }

    @Test func saysWhyItsFolderCannotBeMade() async throws {
        let world = World()
        try await withFolder { folder in
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data().write(to: URL(fileURLWithPath: folder + "/file"))
            let fanOut = fanOut(world, folder + "/file/below", EventLog())
            do {
                try await fanOut.run()
                Issue.record("it ran")
            } catch {
                #expect("\(error)".contains("/file/below"))
            }
        }
    }

    @Test func boundsTheReadsUnderWay() async throws {
        let world = World()
        try world.upload([.person("p1")])
        let oneRead = { (configuration: inout FanOutConfiguration) in
            configuration.maximumReads = 1
            configuration.readerThreads = 1
        }
        try await withFanOut(world, configure: oneRead) { service in
            try await service.caughtUp(with: world)
            let outcomes = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<200 {
                    group.addTask {
                        do {
                            return try await service.pull().count == 1
                        } catch {
                            return error as? FanOutError == .notReady("too many reads are in line") ? false : true
                        }
                    }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            // Some were refused, all others answered, and the place is free again.
            #expect(outcomes >= 1)
            #expect(try await service.pull().count == 1)
        }
    }
}
