/// Which faults a run has, and how often.
final class Faults: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    enum Kind {
        /// A request is lost on its way: nothing was done.
        case request
        /// An answer is lost: what was asked for is done.
        case answer
    }

    /// Whether faults happen: not in the calm at a run's end.
    var areOn = true
    private let dice: SeededGenerator
    /// One in so many requests and answers is lost; `nil`: none.
    private let losses: Int?
    /// A process is killed, falls silent and so on once in so many steps; `nil`: never.
    let shocks: Int?

    init(_ dice: SeededGenerator) {
        self.dice = dice
        losses = dice.pick([nil, 200, 60])
        shocks = dice.pick([nil, 800, 250, 80])
    }

    func strikes(_ kind: Kind) -> Bool {
        guard areOn, let losses else { return false }
        return dice.once(in: kind == .request ? losses : losses * 2)
    }
}
