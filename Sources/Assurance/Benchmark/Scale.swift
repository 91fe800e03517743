/// How much is measured.
package enum Scale: String, Sendable, CaseIterable {
    /// A few seconds: whether everything works, no figures.
    case smoke
    /// A few minutes.
    case small
    /// As much as the targets were set for; an hour, and some 20 GB of disk.
    case full

    /// One of three numbers.
    func pick<Value>(_ smoke: Value, _ small: Value, _ full: Value) -> Value {
        switch self {
        case .smoke: smoke
        case .small: small
        case .full: full
        }
    }

    /// Repetitions whose median counts, after what warms up.
    var repetitions: Int { pick(1, 3, 5) }
}
