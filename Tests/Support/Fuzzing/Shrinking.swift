/// Finds a short part of a list for which something still fails.
///
/// Pieces are left out, large ones first, and stay out where what is left still fails: what remains fails for each of its elements,
/// unless the attempts were used up before.
///
/// - Parameters:
///   - elements: a list for which it fails.
///   - attempts: how often it is tried.
///   - fails: whether it fails for a list.
/// - Returns: elements of the list, in their order.
package func smallestFailing<Element: Sendable>(
    _ elements: [Element], attempts: Int, isolation: isolated (any Actor)? = #isolation,
    fails: ([Element]) async throws -> Bool
) async rethrows -> [Element] {
    var smallest = elements
    var left = attempts
    var piece = elements.count / 2
    while piece > 0, left > 0 {
        var isSmaller = false
        var start = 0
        while start < smallest.count, left > 0 {
            var fewer = smallest
            fewer.removeSubrange(start..<min(start + piece, fewer.count))
            left -= 1
            if try await fails(fewer) {
                (smallest, isSmaller) = (fewer, true)
            } else {
                start += piece
            }
        }
        // With single elements it is tried until none can be left out.
        piece = piece > 1 ? piece / 2 : isSmaller ? 1 : 0
    }
    return smallest
}
