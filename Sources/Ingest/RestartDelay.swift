/// How long a partition waits before it starts again: longer after each failure in a row.
struct RestartDelay {
    /// A broker's change of leader takes about as long.
    private static let first = Duration.milliseconds(100)
    /// Long enough to spare a log that is down, short enough that its return is noticed soon.
    private static let longest = Duration.seconds(10)

    private var following = Self.first

    /// The delay after one more failure.
    mutating func next() -> Duration {
        defer { following = min(following * 2, Self.longest) }
        return following
    }

    /// Something went well.
    mutating func reset() { following = Self.first }
}
