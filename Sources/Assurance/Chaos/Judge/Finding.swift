/// What a chaos run found to be wrong.
struct Finding: Sendable, Hashable {
    enum Kind: String, Sendable, CaseIterable {
        /// An acknowledged batch was not applied.
        case lost
        /// A batch was applied, or reached `changes`, more often than it was sent.
        case doubled
        /// A batch has another outcome than its device got.
        case wrongOutcome = "wrong outcome"
        /// A device's timeStamps, or those in `ordered`, do not rise, or records are out of order.
        case order
        /// A device was sent an older row after a newer one.
        case olderRow = "older row"
        /// An answer said that nothing is left, and did not cover the batch's own results.
        case wrongDrained = "wrong drained"
        /// An entry of the knowledge vector fell, or an owner is sent that is not granted.
        case vector
        /// A drained device's rows are not those of Postgres.
        case copy
        /// A revoked device was accepted too long afterwards, or not refused, or one that is not revoked was refused.
        case revoked
        /// After the end of all faults something did not become ready, settle or drain in time.
        case notHealed = "not healed"
        /// A process ended by a signal that this program did not send.
        case crashed
        /// `weir verify` found a difference.
        case verify
    }

    let kind: Kind
    let text: String
    /// The device and the number of the batch concerned, as in the log of events.
    var batch: BatchName?
}

/// A batch in reports and in the log of events.
struct BatchName: Sendable, Hashable, CustomStringConvertible {
    let owner: String
    let device: String
    let number: Int64

    var description: String { "\(owner)/\(device) batch \(number)" }
}
