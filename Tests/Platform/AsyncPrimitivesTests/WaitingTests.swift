import AsyncPrimitives
import TestClocks
import TestResources
import Testing

@Suite struct PromiseTests {
    @Test func everyWaiterGetsTheFirstValue() async {
        let promise = Promise<Int>()
        await withTaskGroup(of: Int.self) { group in
            for _ in 0..<3 { group.addTask { await promise.value() } }
            #expect(promise.fulfil(1))
            #expect(!promise.fulfil(2))
            for await value in group { #expect(value == 1) }
        }
        #expect(await promise.value() == 1)
    }

    @Test func trapsWhenItsOnlyOwnerFulfilsItTwice() async {
        await #expect(processExitsWith: .trap) {
            let promise = Promise<Int>()
            promise.fulfilOnce(1)
            promise.fulfilOnce(2)
        }
    }

    @Test func cancellationFulfilsThePromise() async {
        let promise = Promise<Int>()
        let task = Task { await promise.value(cancelled: 0) }
        task.cancel()
        #expect(await task.value == 0)
        #expect(!promise.fulfil(1))
    }

    @Test func valueOutlastsCancellation() async {
        let promise = Promise<Int>()
        let task = Task { await promise.value() }
        task.cancel()
        promise.fulfil(1)
        #expect(await task.value == 1)
    }

    @Test func deadlineFulfilsThePromise() async {
        let (promise, clock) = (Promise<Int>(), ManualClock())
        async let value = promise.value(within: .seconds(1), clock: clock, late: 2, cancelled: 3)
        await clock.sleepers(1)
        clock.advance(by: .seconds(1))
        #expect(await value == 2)
    }

    @Test func valueBeforeTheDeadlineEndsTheWait() async {
        let (promise, clock) = (Promise<Int>(), ManualClock())
        async let value = promise.value(within: .seconds(1), clock: clock, late: 2, cancelled: 3)
        await clock.sleepers(1)
        promise.fulfil(1)
        #expect(await value == 1)
    }
}

@Suite struct AwaitableStateTests {
    @Test func updateResumesTheTasksWhoseConditionIsMet() async throws {
        let state = AwaitableState(0)
        async let two: Void = state.wait { $0 == 2 }
        async let five: Void = state.wait { $0 == 5 }
        state.update { $0 = 2 }
        try await two
        #expect(
            state.update { value in
                value += 3
                return value
            } == 5)
        try await five
        try await state.wait { $0 == 5 }
    }

    @Test func cancellationEndsTheWait() async {
        let state = AwaitableState(0)
        let task = Task { try await state.wait { $0 == 1 } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func conditionThatIsMetCountsMoreThanCancellation() async throws {
        let state = AwaitableState(1)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await state.wait { $0 == 1 }
        }
        try await task.value
    }

    @Test func errorOfAnUpdateIsThrown() {
        struct Refused: Error {}
        let state = AwaitableState(0)
        #expect(throws: Refused.self) { try state.update { _ throws(Refused) in throw Refused() } }
        #expect(state.read { $0 + 1 } == 1)
    }
}

@Suite struct GateTests {
    @Test func opensForAllAndClosesAgain() async throws {
        let gate = Gate()
        async let first: Void = gate.wait()
        async let second: Void = gate.wait()
        #expect(gate.open())
        #expect(!gate.open())
        try await first
        try await second
        gate.close()
        #expect(!gate.isOpen)
        let task = Task { try await gate.wait() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}

@Suite struct WakeupTests {
    @Test func signalBeforeTheWaitLetsOneWaitPass() async {
        let wakeup = Wakeup()
        wakeup.signal()
        wakeup.signal()
        await wakeup.wait()
        let task = Task { await wakeup.wait() }
        wakeup.signal()
        await task.value
    }

    @Test func cancellationCountsAsASignal() async {
        let wakeup = Wakeup()
        let task = Task { await wakeup.waitUnlessCancelled() }
        task.cancel()
        await task.value
    }
}
