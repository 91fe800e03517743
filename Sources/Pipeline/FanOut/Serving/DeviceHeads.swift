import SyncModel

/// The heads of the devices that created an owner's rows, sorted by knowledgeId.
///
/// A change may name any knowledgeId, so an owner may have as many as rows. They are in chunks: a new device moves, and a transaction
/// copies, those of the chunks that it touches, and not all.
struct DeviceHeads: Sendable, Hashable, Sequence {
    typealias DeviceHead = OwnerHeads.DeviceHead

    /// 512: a chunk is copied in some microseconds, and there are few of them.
    private static let maximumChunk = 512

    /// None is empty.
    private var chunks: [[DeviceHead]] = []
    private(set) var count = 0

    /// - Parameter devices: each once.
    init(_ devices: [DeviceHead] = []) {
        let sorted = devices.sorted { $0.knowledgeID < $1.knowledgeID }
        count = sorted.count
        // With space for those that come.
        let size = Self.maximumChunk / 2
        chunks = stride(from: 0, to: sorted.count, by: size).map {
            Array(sorted[$0..<Swift.min($0 + size, sorted.count)])
        }
    }

    func makeIterator() -> FlattenSequence<[[DeviceHead]]>.Iterator { chunks.joined().makeIterator() }

    /// The head of a device; `nil` for one without rows.
    subscript(device: KnowledgeID) -> DeviceHead? {
        guard let (chunk, position) = place(of: device), position < chunks[chunk].count,
            chunks[chunk][position].knowledgeID == device
        else { return nil }
        return chunks[chunk][position]
    }

    /// Changes the head of a device, or adds one.
    ///
    /// - Parameter change: the head afterwards, from that before; `nil` for a device without rows.
    /// - Returns: the head afterwards.
    mutating func update(_ device: KnowledgeID, _ change: (DeviceHead?) -> DeviceHead) -> DeviceHead {
        guard let (chunk, position) = place(of: device) else {
            let head = change(nil)
            (chunks, count) = ([[head]], 1)
            return head
        }
        if position < chunks[chunk].count, chunks[chunk][position].knowledgeID == device {
            chunks[chunk][position] = change(chunks[chunk][position])
            return chunks[chunk][position]
        }
        let head = change(nil)
        count += 1
        chunks[chunk].insert(head, at: position)
        guard chunks[chunk].count > Self.maximumChunk else { return head }
        let middle = chunks[chunk].count / 2
        chunks.insert(Array(chunks[chunk][middle...]), at: chunk + 1)
        chunks[chunk].removeSubrange(middle...)
        return head
    }

    /// Where a device is, or would be: in the last chunk that does not begin after it; `nil` where there is no chunk.
    private func place(of device: KnowledgeID) -> (chunk: Int, position: Int)? {
        guard !chunks.isEmpty else { return nil }
        let chunk = Swift.max(0, Self.count(in: chunks) { $0[0].knowledgeID <= device } - 1)
        return (chunk, Self.count(in: chunks[chunk]) { $0.knowledgeID < device })
    }

    /// How many elements come first that meet a condition, which none does after one that does not.
    private static func count<Element>(in elements: [Element], where isMet: (Element) -> Bool) -> Int {
        var low = 0
        var high = elements.count
        while low < high {
            let middle = (low + high) / 2
            if isMet(elements[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Whatever the chunks are.
    static func == (left: DeviceHeads, right: DeviceHeads) -> Bool {
        left.count == right.count && left.elementsEqual(right)
    }

    func hash(into hasher: inout Hasher) { hasher.combine(count) }
}
