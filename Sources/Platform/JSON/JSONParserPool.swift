import Synchronization

/// JSON parsers for tasks that parse now and then: as many as are in use at a time, whatever the number of tasks.
///
/// A parser keeps the memory of its largest document (``JSONParser``). Idle ones are kept with what small documents need, and one with
/// that of a large document.
package final class JSONParserPool: Sendable {
    private final class Box: @unchecked Sendable {
        // Unchecked: used only by the caller that took it out of the pool.
        var parser = JSONParser()
        var largestCount = 0
    }

    private struct Idle {
        var small: [Box] = []
        var large: Box?
    }

    /// A document above it is large: 256 KiB, for which a parser keeps about 5 MB.
    private static let largeCount = 256 << 10

    private let idle = Mutex(Idle())

    package init() {}

    /// Calls a closure with a parser that no other caller uses meanwhile.
    ///
    /// - Parameter count: the bytes of the document that it parses.
    package func withParser<Result, Failure: Error>(
        for count: Int, _ body: (inout JSONParser) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let box = take(for: count)
        box.largestCount = max(box.largestCount, count)
        defer { giveBack(box) }
        return try body(&box.parser)
    }

    private func take(for count: Int) -> Box {
        idle.withLock { idle in
            if count > Self.largeCount, let large = idle.large.take() { return large }
            return idle.small.popLast()
        } ?? Box()
    }

    private func giveBack(_ box: Box) {
        idle.withLock { idle in
            if box.largestCount <= Self.largeCount {
                idle.small.append(box)
            } else if idle.large == nil {
                idle.large = box
            }
        }
    }
}
