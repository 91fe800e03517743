/// Timers in the order of their times, those of one time in the order in which they were made.
struct TimerHeap {
    final class Timer {
        fileprivate let time: Duration
        fileprivate let number: Int
        private var action: (() -> Void)?

        fileprivate init(time: Duration, number: Int, _ action: @escaping () -> Void) {
            self.time = time
            self.number = number
            self.action = action
        }

        /// Lets it never fire.
        func cancel() { action = nil }

        var isCancelled: Bool { action == nil }

        func fire() { action.take()?() }

        fileprivate func isBefore(_ other: Timer) -> Bool { (time, number) < (other.time, other.number) }
    }

    private var heap: [Timer] = []
    private var lastNumber = 0

    /// Whether no timer will fire.
    var isEmpty: Bool { heap.allSatisfy(\.isCancelled) }

    /// The time of the next that fires.
    var nextTime: Duration? {
        mutating get {
            while let first = heap.first, first.isCancelled { removeFirst() }
            return heap.first?.time
        }
    }

    mutating func insert(at time: Duration, _ action: @escaping () -> Void) -> Timer {
        lastNumber += 1
        let timer = Timer(time: time, number: lastNumber, action)
        heap.append(timer)
        var child = heap.count - 1
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
        return timer
    }

    /// Takes out the first timer, unless its time is yet to come.
    mutating func removeFirst(before now: Duration) -> Timer? {
        guard let time = nextTime, time <= now else { return nil }
        return removeFirst()
    }

    @discardableResult
    private mutating func removeFirst() -> Timer? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        if heap.isEmpty { return first }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].isBefore(heap[least])
            {
                least = child
            }
            if least == parent { return first }
            heap.swapAt(least, parent)
            parent = least
        }
    }
}
