/// The times at which connections are to be looked at, soonest first: a binary heap.
struct DeadlineHeap {
    /// A connection and when to look at it.
    struct Entry {
        var time: UInt64
        var descriptor: Int32
        var number: UInt32
    }

    private var entries: [Entry] = []

    /// The soonest time; `nil` when there is none.
    var soonest: UInt64? { entries.first?.time }

    /// Adds an entry.
    mutating func insert(_ entry: Entry) {
        entries.append(entry)
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].time < entries[parent].time else { return }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes out the soonest entry if its time has come.
    mutating func takeDue(at now: UInt64) -> Entry? {
        guard let first = entries.first, first.time <= now else { return nil }
        let last = entries.removeLast()
        guard !entries.isEmpty else { return first }
        entries[0] = last
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < entries.count && entries[child].time < entries[smallest].time {
                smallest = child
            }
            if smallest == parent { return first }
            entries.swapAt(parent, smallest)
            parent = smallest
        }
    }
}
