/// How far the making of a stream from the tables has come, in rows and outcomes together.
package struct RebuildProgress: Sendable, Hashable, CustomStringConvertible {
    /// How many the new file has.
    package let done: Int
    /// How many it will have; never less than it has.
    package let total: Int
    /// Whether the total was counted; else it is an estimate, which may be some percent off.
    package let isExact: Bool
    /// The time since the first of them was read; zero before.
    package let elapsed: Duration

    /// States how far it is.
    package init(done: Int, total: Int, isExact: Bool, elapsed: Duration = .zero) {
        self.done = done
        self.total = max(done, total)
        self.isExact = isExact
        self.elapsed = elapsed
    }

    /// How many come in a second, on average so far; `nil` before the first.
    package var perSecond: Double? {
        done > 0 && elapsed > .zero ? Double(done) / (elapsed / .seconds(1)) : nil
    }

    /// How long the rest takes at that rate; `nil` before the first.
    package var timeLeft: Duration? {
        perSecond.map { .seconds(Double(total - done) / $0) }
    }

    /// How far it is, in words.
    package var description: String {
        var words = "\(done) of \(isExact ? "" : "about ")\(total) rows and outcomes"
        if let perSecond, let timeLeft {
            words += ", \(Int(perSecond.rounded())) a second, \(Self.words(timeLeft)) left"
        }
        return words
    }

    /// A time in the unit that suits it: 119 s, 119 min, 2 h.
    private static func words(_ time: Duration) -> String {
        let seconds = Int((time / .seconds(1)).rounded(.up))
        if seconds < 120 { return "\(seconds) s" }
        let minutes = (seconds + 59) / 60
        return minutes < 120 ? "\(minutes) min" : "\((minutes + 59) / 60) h"
    }
}
