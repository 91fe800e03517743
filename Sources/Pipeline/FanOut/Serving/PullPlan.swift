import SyncModel

/// Which rows of an owner's stream a device lacks, and its vector afterwards, computed from heads alone (I6, I7).
///
/// The answer's entries contain every device of the request, and those others whose entry is above the request's floor.
/// The floor remains the entry of all other devices, so the vector is exact and minimal. The floor itself is not an
/// entry here; the gateway repeats it in the answer.
struct PullPlan {
    /// A device with rows above the vector's entry.
    struct Source: Hashable {
        /// The index in the owner's devices.
        let position: Int
        /// The number in the file.
        let device: Int64
        /// The vector's entry; rows above it are missing on the device.
        let from: TimeStamp
        /// The newest of the device's rows.
        let head: TimeStamp
    }

    let knowledge: OwnerKnowledge
    let heads: OwnerHeads
    /// By knowledgeId.
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

    /// The entries of a drained device: for every creating device the greater of the sent entry and the head.
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

    /// The entries after a cut page: those sent, and for each source the last row that the page passed.
    ///
    /// - Parameter passed: for each source its last row up to the last row sent, else its `from`.
    func cutEntries(_ passed: [TimeStamp]) -> [(device: KnowledgeID, timeStamp: TimeStamp)] {
        var known = knowledge.entries
        for (source, timeStamp) in zip(sources, passed) where timeStamp > source.from {
            known[heads.devices[source.position].knowledgeID] = timeStamp
        }
        return known.map { (device: $0.key, timeStamp: $0.value) }.sorted { $0.device < $1.device }
    }
}
