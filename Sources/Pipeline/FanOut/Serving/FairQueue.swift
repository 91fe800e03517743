/// Elements that are taken in turns of their keys, and in order of arrival within a key.
struct FairQueue<Key: Hashable, Element> {
    private struct Waiting {
        var elements: [Element] = []
        /// The index of the first element; those before it were taken.
        var first = 0

        var isEmpty: Bool { first == elements.count }
    }

    private var waiting: [Key: Waiting] = [:]
    /// The keys with elements, the next one first.
    private var turns: [Key] = []

    var isEmpty: Bool { turns.isEmpty }

    mutating func append(_ element: Element, for key: Key) {
        if waiting[key] == nil { turns.append(key) }
        waiting[key, default: Waiting()].elements.append(element)
    }

    /// Takes the first element of the first key that may have a turn, whose next turn comes after those of all others.
    mutating func take(where mayTake: (Key) -> Bool = { _ in true }) -> Element? {
        guard let index = turns.firstIndex(where: mayTake) else { return nil }
        let key = turns.remove(at: index)
        guard var of = waiting.removeValue(forKey: key) else { return nil }
        let element = of.elements[of.first]
        of.first += 1
        if !of.isEmpty {
            // Keeps what was taken at most as long as what waits.
            if of.first > of.elements.count / 2 {
                of.elements.removeFirst(of.first)
                of.first = 0
            }
            waiting[key] = of
            turns.append(key)
        }
        return element
    }
}
