import HTTP
import TestSignals
import Testing

/// Reservations of large responses: in turns, and with a share for everybody.
@Suite(.timeLimit(.minutes(5))) struct ResponseBudgetTests {
    private let never: @Sendable () async throws -> Void = { try await Task.sleep(for: .seconds(3600)) }

    private func isLate(_ budget: ResponseBudget, _ bytes: Int, _ caller: String) async -> Bool {
        do throws(ResponseBudget.Refusal) {
            _ = try await budget.reserve(bytes, for: caller) {}
            return false
        } catch {
            return error == .late
        }
    }

    @Test func reservationsAreFreedWithTheirResponses() async throws {
        let budget = ResponseBudget(limit: 100)
        do {
            let first = try await budget.reserve(60, for: "a", timeout: never)
            #expect(budget.inFlight == 60)
            #expect(await isLate(budget, 60, "b"))
            withExtendedLifetime(first) {}
        }
        #expect(budget.inFlight == 0)
        #expect(await isLate(budget, 60, "b") == false)
        #expect(budget.inFlight == 0)
    }

    @Test func oneAloneMayExceedTheLimit() async throws {
        let budget = ResponseBudget(limit: 100)
        let large = try await budget.reserve(1000, for: "a", timeout: never)
        #expect(await isLate(budget, 1, "b"))
        withExtendedLifetime(large) {}
    }

    /// Half of all for one alone, a third for each of two, and so on.
    @Test func aCallerHoldsAtMostAsMuchAsIsFree() async throws {
        let budget = ResponseBudget(limit: 100)
        var held: [ResponseReservation] = []
        for _ in 0..<5 { held.append(try await budget.reserve(10, for: "greedy", timeout: never)) }
        #expect(await isLate(budget, 10, "greedy"))
        for caller in ["a", "b", "c"] { held.append(try await budget.reserve(10, for: caller, timeout: never)) }
        #expect(budget.inFlight == 80)
        #expect(await isLate(budget, 10, "greedy"))
        // Its own share is free again before it gets more.
        held.removeFirst(4)
        #expect(budget.inFlight == 40)
        #expect(await isLate(budget, 10, "greedy") == false)
        held = []
        #expect(budget.inFlight == 0)
    }

    /// What is refused is refused at once: it would wait forever here.
    @Test func aCallerHasAtMostAsManyWaitersAsAreFree() async throws {
        let budget = ResponseBudget(limit: 10, maximumWaiting: 3)
        let first = try await budget.reserve(10, for: "x", timeout: never)
        var waiting: [Task<Void, any Error>] = []
        for (index, caller) in ["a", "a", "b"].enumerated() {
            if index == 2 {
                await #expect(throws: ResponseBudget.Refusal.late) {
                    try await budget.reserve(10, for: "a", timeout: never)
                }
            }
            waiting.append(Task { _ = try await budget.reserve(10, for: caller, timeout: never) })
            while budget.waiting <= index { await Task.yield() }
        }
        await #expect(throws: ResponseBudget.Refusal.late) { try await budget.reserve(10, for: "c", timeout: never) }
        withExtendedLifetime(first) {}
        for task in waiting { task.cancel() }
    }

    @Test func waitersAreServedInTurnsOfTheirCallers() async throws {
        let budget = ResponseBudget(limit: 10)
        let order = Signal<String>()
        let left = Signal<Void>()
        var first: ResponseReservation? = try await budget.reserve(10, for: "x", timeout: never)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, caller) in ["a", "a", "a", "b", "c"].enumerated() {
                group.addTask {
                    let reservation = try await budget.reserve(10, for: caller, timeout: never)
                    order.send(caller)
                    withExtendedLifetime(reservation) {}
                }
                // In this order.
                while budget.waiting <= index { await Task.yield() }
            }
            // One that leaves does not get a turn.
            let leaving = Task {
                do throws(ResponseBudget.Refusal) {
                    _ = try await budget.reserve(10, for: "d", timeout: never)
                } catch {
                    #expect(error == .cancelled)
                    left.send(())
                }
            }
            while budget.waiting <= 5 { await Task.yield() }
            leaving.cancel()
            await left.next()
            withExtendedLifetime(first) {}
            first = nil
            var served: [String] = []
            for _ in 0..<5 { served.append(await order.next()) }
            #expect(served == ["a", "b", "c", "a", "a"])
            try await group.waitForAll()
        }
        while budget.inFlight > 0 { await Task.yield() }
    }
}
