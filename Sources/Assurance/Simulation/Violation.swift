/// An invariant that did not hold.
struct Violation: Error, CustomStringConvertible {
    /// The invariants that a run watches (docs/architecture.md).
    enum Invariant: String {
        case nothingLost = "I1, nothing acknowledged is lost"
        case appliedOnce = "I2, applied once"
        case oneOrder = "I3, one order an owner"
        case sameBytes = "I4, replay gives the same bytes"
        case publishThenWrite = "I5, publish, then write"
        case exactPull = "I6, a pull is exact"
        case drainedEqual = "I7, a drained device equals the server"
        case deletesStay = "I8, deletes stay deleted"
        case ownersApart = "I9, owners are apart"
        case rules = "the rules for one change"
        case progress = "what is asked for comes about"
    }

    let invariant: Invariant
    let message: String

    var description: String { "\(invariant.rawValue): \(message)" }
}
