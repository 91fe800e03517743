/// Suggests a known name for a mistyped one.
package enum NearestName {
    /// The known name with the fewest edits, the first of several; `nil` where all are too different.
    ///
    /// An edit inserts, deletes or replaces a byte or swaps two neighbours. At most two fifths of the
    /// longer name may differ, or two bytes.
    package static func find(_ name: String, among known: some Sequence<String>) -> String? {
        let name = Array(name.utf8)
        // Bounds the table whatever is passed in.
        guard name.count <= 200 else { return nil }
        var best: (name: String, distance: Int)?
        for candidate in known {
            let distance = distance(name, Array(candidate.utf8))
            guard distance <= max(2, max(name.count, candidate.utf8.count) * 2 / 5) else { continue }
            // Names that share nothing are not alike, however short they are.
            guard distance < max(name.count, candidate.utf8.count) else { continue }
            if distance < best?.distance ?? .max { best = (candidate, distance) }
        }
        return best?.name
    }

    /// The edits between two names, each position edited once (optimal string alignment).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforePrevious: [Int] = []
        var previous = Array(0...right.count)
        for i in left.indices {
            var current = [i + 1]
            current.reserveCapacity(right.count + 1)
            for j in right.indices {
                let replaced = previous[j] + (left[i] == right[j] ? 0 : 1)
                var least = min(replaced, previous[j + 1] + 1, current[j] + 1)
                if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                    least = min(least, beforePrevious[j - 1] + 1)
                }
                current.append(least)
            }
            beforePrevious = previous
            previous = current
        }
        return previous[right.count]
    }
}
