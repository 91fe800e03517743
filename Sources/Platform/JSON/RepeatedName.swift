import CSimdjson

/// Finds repeated names in an object.
///
/// Small objects are compared pair by pair, without allocation; large ones are sorted, so that the cost is O(n log n).
enum RepeatedName {
    /// Up to this count, comparing all pairs is cheaper than sorting.
    private static let pairwiseLimit = 24

    /// The tape word of the first repeated name.
    static func find(in object: borrowing JSONValue) -> Int? {
        object.count <= pairwiseLimit ? findPairwise(object) : findSorted(object)
    }

    private static func findPairwise(_ object: borrowing JSONValue) -> Int? {
        guard var members = object.members, var earlier = object.members else { return nil }
        let first = earlier
        while let member = members.next() {
            earlier = first
            while let other = earlier.next(), other.nameValue.word < member.nameValue.word {
                if other.name.hasSameBytes(as: member.name) { return member.nameValue.word }
            }
        }
        return nil
    }

    private static func findSorted(_ object: borrowing JSONValue) -> Int? {
        guard var members = object.members else { return nil }
        var names: [Name] = []
        names.reserveCapacity(object.count)
        while let member = members.next() {
            names.append(Name(member))
        }
        names.sort()
        var found: Int?
        for (left, right) in zip(names, names.dropFirst()) where left.hasSameBytes(as: right) {
            found = min(found ?? right.word, right.word)
        }
        return found
    }

    // Invariant: used only in `findSorted`, while the object is borrowed.
    private struct Name: Comparable {
        let bytes: UnsafeBufferPointer<UInt8>
        let word: Int

        init(_ member: borrowing JSONMember) {
            bytes = member.name.withUnsafeBufferPointer { $0 }
            word = member.nameValue.word
        }

        func hasSameBytes(as other: Name) -> Bool {
            compare(with: other) == 0
        }

        /// By bytes, then by position.
        static func < (left: Name, right: Name) -> Bool {
            let order = left.compare(with: right)
            return order < 0 || (order == 0 && left.word < right.word)
        }

        private func compare(with other: Name) -> Int {
            if bytes.count != other.bytes.count { return bytes.count - other.bytes.count }
            for (left, right) in zip(bytes, other.bytes) where left != right { return Int(left) - Int(right) }
            return 0
        }

        static func == (left: Name, right: Name) -> Bool { left.word == right.word }
    }
}
