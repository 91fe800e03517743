import SyncModel

/// Which fan-outs lag behind others, from the uploads that each reports as passed: an owner's requests go to them last.
///
/// Streams that follow at the same pace differ all the time by what is under way. A fan-out lags in a partition if it lacks
/// what another one had a heartbeat before.
struct StreamProgress: Sendable {
    /// Of each fan-out: the newest offset of `uploads` that can be pulled, by partition.
    private var passed: [[Int: Int64]]
    /// The newest offsets of all fan-outs at the last heartbeat.
    private var newest: [Int: Int64] = [:]
    /// The partitions in which each lags or did so lately, with the heartbeats until owners come back.
    private var lagging: [[Int: Int]]

    /// Heartbeats without lag until owners come back: moving them to and fro costs more than it saves.
    static let recovery = 8

    init(fanOuts: Int) {
        passed = Array(repeating: [:], count: fanOuts)
        lagging = Array(repeating: [:], count: fanOuts)
    }

    func isLagging(_ fanOut: Int, in partition: Int) -> Bool { lagging[fanOut][partition] != nil }

    /// Records that a fan-out serves everything up to an upload.
    mutating func record(_ upload: UploadReference, of fanOut: Int) {
        passed[fanOut][upload.partition] = max(upload.offset, passed[fanOut][upload.partition] ?? 0)
    }

    /// Forgets a fan-out whose connection was lost.
    mutating func forget(_ fanOut: Int) {
        passed[fanOut] = [:]
        lagging[fanOut] = [:]
    }

    /// Compares the fan-outs.
    ///
    /// - Parameter ready: the partitions that each serves. One that has not reported anything of a partition it serves has what
    ///   the others had: it was ready only then.
    /// - Returns: whether other fan-outs lag than before.
    mutating func heartbeat(ready: [Set<Int>]) -> Bool {
        let before = lagging.map { Set($0.keys) }
        for (fanOut, partitions) in ready.enumerated() {
            var now: [Int: Int] = [:]
            for partition in partitions {
                guard let newest = newest[partition] else { continue }
                let own = passed[fanOut][partition] ?? newest
                passed[fanOut][partition] = own
                if own < newest {
                    now[partition] = Self.recovery
                } else if let left = lagging[fanOut][partition], left > 1 {
                    now[partition] = left - 1
                }
            }
            lagging[fanOut] = now
        }
        newest = [:]
        for offsets in passed { newest.merge(offsets) { max($0, $1) } }
        return lagging.map { Set($0.keys) } != before
    }
}
