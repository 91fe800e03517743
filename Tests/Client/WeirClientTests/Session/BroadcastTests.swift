import Dispatch
import TestSignals
import Testing
import WeirClient

@Suite struct BroadcastTests {
    /// Neither may wait for the other: who cancels a task has it locked, and who resumes it waits for that.
    @Test(.timeLimit(.minutes(5))) func anObserverMayBeCancelledWhileItIsNotified() async throws {
        let (notifying, cancelling) = (DispatchQueue(label: "notifying"), DispatchQueue(label: "cancelling"))
        let broadcast = Broadcast(0)
        for round in 1...2000 {
            let ended = Signal<Int>()
            let observer = Task {
                for await _ in broadcast.stream() {}
                ended.send(round)
            }
            notifying.async { for _ in 0..<20 { broadcast.update { $0 += 1 } } }
            cancelling.async { observer.cancel() }
            #expect(try await ended.nextOrCancellation() == round)
        }
    }

    @Test func valuesOfConcurrentUpdatesComeInTheirOrder() async {
        let broadcast = Broadcast(0)
        let stream = broadcast.stream()
        let observer = Task {
            var seen: [Int] = []
            for await value in stream { seen.append(value) }
            return seen
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 { group.addTask { for _ in 0..<500 { broadcast.update { $0 += 1 } } } }
        }
        broadcast.finish()
        let seen = await observer.value
        #expect(seen.last == 2000 && seen == seen.sorted() && Set(seen).count == seen.count, "\(seen)")
    }
}
