import AsyncPrimitives
import Testing

@Suite struct FairQueueTests {
    @Test func keysTakeTurnsAndElementsKeepTheirOrder() {
        var queue = FairQueue<String, Int>()
        for number in 1...4 { queue.append(number, for: "a") }
        for number in 11...12 { queue.append(number, for: "b") }
        var taken: [Int] = []
        while let next = queue.take() {
            taken.append(next)
            // A key that comes later waits for one turn of every other.
            if next == 1 { queue.append(21, for: "c") }
        }
        #expect(taken == [1, 11, 2, 21, 12, 3, 4])
        queue.append(1, for: "a")
        queue.append(11, for: "b")
        #expect(queue.take { key, _ in key != "a" } == 11)
        #expect(queue.take { key, _ in key != "a" } == nil)
        #expect(queue.take() == 1)
    }

    @Test func anElementThatMayNotBeTakenKeepsItsPlaceInItsKey() {
        var queue = FairQueue<String, Int>()
        for number in [5, 1] { queue.append(number, for: "a") }
        queue.append(2, for: "b")
        #expect(queue.take { $1 < 5 } == 2)
        #expect(queue.take { $1 < 5 } == nil)
        #expect(queue.take() == 5)
        #expect(queue.take { $1 < 5 } == 1)
    }
}
