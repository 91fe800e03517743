/// Elements that are taken in turns of their keys, and in order of arrival within a key.
public struct FairQueue<Key: Hashable, Element> {
    @usableFromInline struct Waiting {
        @usableFromInline var elements: [Element]
        /// The index of the first element; those before it were taken.
        @usableFromInline var first = 0

        @inlinable init(_ element: Element) { elements = [element] }

        @inlinable var isEmpty: Bool { first == elements.count }
    }

    @usableFromInline var waiting: [Key: Waiting] = [:]
    /// The keys with elements, the next one first.
    @usableFromInline var turns: [Key] = []

    /// An empty queue.
    @inlinable public init() {}

    /// Whether no element waits.
    @inlinable public var isEmpty: Bool { turns.isEmpty }

    /// Adds an element behind those of its key; a key without elements gets its turn after all others.
    @inlinable public mutating func append(_ element: Element, for key: Key) {
        guard waiting[key]?.elements.append(element) == nil else { return }
        waiting[key] = Waiting(element)
        turns.append(key)
    }

    /// Takes the first element of the first key that may have a turn, whose next turn comes after those of all others.
    ///
    /// - Parameter mayTake: decides on the first element of a key.
    @inlinable public mutating func take(where mayTake: (Key, Element) -> Bool = { _, _ in true }) -> Element? {
        let index = turns.firstIndex { key in waiting[key].map { mayTake(key, $0.elements[$0.first]) } ?? false }
        guard let index else { return nil }
        let key = turns.remove(at: index)
        guard var queue = waiting.removeValue(forKey: key) else { return nil }
        let element = queue.elements[queue.first]
        queue.first += 1
        if !queue.isEmpty {
            // Keeps what was taken at most as long as what waits.
            if queue.first > queue.elements.count / 2 {
                queue.elements.removeFirst(queue.first)
                queue.first = 0
            }
            waiting[key] = queue
            turns.append(key)
        }
        return element
    }
}
