import AsyncPrimitives
import Dispatch
import Testing

@testable import ThreadExecutor

@Suite(.timeLimit(.minutes(5))) struct ThreadTurnsTests {
    /// Occupies a thread until it is released.
    private func occupy(_ turns: ThreadTurns<String>, for caller: String) async -> (
        task: Task<Void, Never>, DispatchSemaphore
    ) {
        let (begun, released) = (Promise<Void>(), DispatchSemaphore(value: 0))
        let task = Task {
            await turns.run(for: caller) {
                begun.fulfil(())
                released.wait()
            }
        }
        await begun.value()
        return (task, released)
    }

    @Test func callersTakeTurns() async throws {
        let turns = try ThreadTurns<String>(name: "t", count: 1)
        let (first, released) = await occupy(turns, for: "a")
        let (order, taken) = AsyncStream.makeStream(of: String.self)
        // Started one after the other, so that they wait in this order.
        let waiting = ["a", "a", "a", "b"].map { caller in
            Task.immediate { await turns.run(for: caller) { _ = taken.yield(caller) } }
        }
        released.signal()
        #expect(await order.prefix(4).reduce(into: []) { $0.append($1) } == ["a", "b", "a", "a"])
        await first.value
        for task in waiting { await task.value }
        await turns.close()
    }

    @Test func asManyComputationsRunAtOnceAsThereAreThreads() async throws {
        let turns = try ThreadTurns<String>(name: "t", count: 2)
        let (first, released) = await occupy(turns, for: "a")
        let (second, releasedLater) = await occupy(turns, for: "a")
        let third = Task.immediate { await turns.run(for: "b") {} }
        released.signal()
        await third.value
        releasedLater.signal()
        await first.value
        await second.value
        await turns.close()
    }

    @Test func aComputationRunsOnAThreadOfItsOwn() async throws {
        let turns = try ThreadTurns<Int>(name: "t", count: 1)
        let thread = try #require(turns.threads.first)
        #expect(await turns.run(for: 1) { thread.isCurrent })
        #expect(!thread.isCurrent)
        await turns.close()
        #expect(await turns.run(for: 1) { !thread.isCurrent })
    }

    @Test func closingWaitsForComputationsAndLetsOthersRunWithoutATurn() async throws {
        let turns = try ThreadTurns<String>(name: "t", count: 1)
        let (first, released) = await occupy(turns, for: "a")
        let waiting = Task.immediate { await turns.run(for: "b") {} }
        let isClosed = AwaitableState(false)
        let closing = Task {
            await turns.close()
            isClosed.update { $0 = true }
        }
        // While the only thread is occupied.
        await waiting.value
        #expect(!isClosed.value)
        released.signal()
        await first.value
        await closing.value
    }

    @Test func aComputationThatThrowsLeavesItsThreadToTheNext() async throws {
        let turns = try ThreadTurns<String>(name: "t", count: 1)
        await #expect(throws: CancellationError.self) {
            try await turns.run(for: "a") { () throws in throw CancellationError() }
        }
        #expect(await turns.run(for: "a") { true })
        await turns.close()
    }
}
