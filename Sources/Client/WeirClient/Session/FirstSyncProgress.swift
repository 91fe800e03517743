/// How much of a first sync has come, as far as timeStamps tell: an owner's rows come in their order, and a cut page says which is
/// the owner's last.
///
/// It counts from where this process has begun.
struct FirstSyncProgress {
    /// The first timeStamp of each owner's rows.
    private var origins: [String: Int64] = [:]
    private(set) var fraction = 0.0

    /// Takes an answer into account.
    mutating func receive(_ answer: SyncAnswer) {
        var newest: [String: Int64] = [:]
        for row in answer.changes {
            if origins[row.syncID] == nil { origins[row.syncID] = row.timeStamp }
            newest[row.syncID] = row.timeStamp
        }
        var left: [String: Double] = [:]
        for owner in answer.cutFrom {
            var part = 1.0
            if let newest = newest[owner.syncID], let origin = origins[owner.syncID], owner.head > origin {
                part = Double(owner.head - newest) / Double(owner.head - origin)
            }
            left[owner.syncID] = min(1, max(0, part))
        }
        let owners = max(answer.owners.count, left.count, 1)
        // Only the end of the session is the whole.
        fraction = max(fraction, min(0.99, 1 - left.values.reduce(0, +) / Double(owners)))
    }
}
