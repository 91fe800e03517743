import SyncModel

/// What of an owner's stream a device lacks, and what its vector says afterwards, worked out from heads alone (I6, I7).
///
/// The answer's entries name every device that the request named, and of the others those whose entry is above the
/// request's floor: the floor goes on counting for all that is not named, so the vector stays exact and no longer than
/// it must be. The floor itself is no entry here; whoever renders the answer repeats it.
struct PullPlan {
    /// A device with rows above the vector's entry.
    struct Source: Hashable {
        /// Its position among the owner's devices.
        let position: Int
        /// Its number in the file.
        let device: Int64
        /// The vector's entry: rows above it are lacking.
        let from: TimeStamp
        /// The newest of its rows.
        let head: TimeStamp
    }

    /// What the device holds.
    let knowledge: OwnerKnowledge
    /// What there is.
    let heads: OwnerHeads
    /// Whose rows are lacking, by the devices' names.
    let sources: [Source]

    init(_ knowledge: OwnerKnowledge, heads: OwnerHeads) {
        self.knowledge = knowledge
        self.heads = heads
        if knowledge.entries.isEmpty, heads.head <= knowledge.floor {
            sources = []
            return
        }
        var sources: [Source] = []
        for (position, device) in heads.devices.enumerated() {
            let from = knowledge[device.knowledgeID]
            if device.head > from {
                sources.append(Source(position: position, device: device.number, from: from, head: device.head))
            }
        }
        self.sources = sources
    }

    /// The entries of a device that holds everything: the greater of what it sent and the head, for every device.
    var drainedEntries: [(device: KnowledgeID, timeStamp: TimeStamp)] {
        var entries: [(device: KnowledgeID, timeStamp: TimeStamp)] = []
        entries.reserveCapacity(max(heads.devices.count, knowledge.entries.count))
        var named = 0
        for device in heads.devices {
            if let sent = knowledge.entries[device.knowledgeID] {
                entries.append((device.knowledgeID, max(sent, device.head)))
                named += 1
            } else if device.head > knowledge.floor {
                entries.append((device.knowledgeID, device.head))
            }
        }
        if named < knowledge.entries.count {
            for (device, sent) in knowledge.entries where heads[device] == nil { entries.append((device, sent)) }
            entries.sort { $0.device < $1.device }
        }
        return entries
    }

    /// The entries after a page that was cut: what was sent, and of each source the last row that the page passed.
    ///
    /// - Parameter passed: for each source its last row up to the last one sent; its `from` where there was none.
    func cutEntries(_ passed: [TimeStamp]) -> [(device: KnowledgeID, timeStamp: TimeStamp)] {
        var known = knowledge.entries
        for (source, timeStamp) in zip(sources, passed) where timeStamp > source.from {
            known[heads.devices[source.position].knowledgeID] = timeStamp
        }
        return known.map { (device: $0.key, timeStamp: $0.value) }.sorted { $0.device < $1.device }
    }
}
