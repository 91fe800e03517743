import SyncModel

/// The newest timeStamps of an owner's stream, in total and per creating device: all that an idle pull needs.
struct OwnerHeads: Sendable, Hashable {
    struct DeviceHead: Sendable, Hashable {
        let knowledgeID: KnowledgeID
        /// The number in the file.
        let number: Int64
        /// The newest timeStamp of the rows that it created.
        var head: TimeStamp
        /// For a device whose rows are in the index by time, a timeStamp that no row of it is below; zero for the others.
        var indexedFrom: TimeStamp

        var isIndexed: Bool { indexedFrom > .zero }
    }

    /// The rows of an owner's first devices are not in the index by time.
    ///
    /// 64: a pull begins with a search for each, together less than a millisecond, and most owners have fewer devices, which
    /// cost no writing to the index.
    static let unindexedDevices = 64

    /// The owner's number in the file; 0 for an owner that is not in the file.
    let number: Int64
    private(set) var head: TimeStamp
    /// Sorted by knowledgeId.
    private(set) var devices: [DeviceHead] = []
    /// The indexes in `devices` of those that are not in the index by time, in order.
    private(set) var unindexed: [Int] = []
    /// The newest timeStamp of the devices in the index by time; zero where there are none.
    private(set) var indexedHead = TimeStamp.zero
    /// A timeStamp that no row in the index by time is below; zero where there are none.
    private(set) var indexedFrom = TimeStamp.zero

    init(number: Int64 = 0) {
        self.number = number
        head = .zero
    }

    /// - Parameter devices: each device once.
    init(number: Int64, head: TimeStamp, devices: [DeviceHead]) {
        self.number = number
        self.head = head
        self.devices = devices.sorted { $0.knowledgeID < $1.knowledgeID }
        for (index, device) in self.devices.enumerated() {
            if device.isIndexed { extendIndex(to: device) } else { unindexed.append(index) }
        }
    }

    subscript(device: KnowledgeID) -> DeviceHead? { index(of: device).map { devices[$0] } }

    /// The index in `devices`; `nil` for a device without rows.
    func index(of device: KnowledgeID) -> Int? {
        let position = position(of: device)
        return position < devices.count && devices[position].knowledgeID == device ? position : nil
    }

    private mutating func extendIndex(to device: DeviceHead) {
        indexedFrom = indexedFrom == .zero ? device.indexedFrom : min(indexedFrom, device.indexedFrom)
        indexedHead = max(indexedHead, device.head)
    }

    /// Advances the head of a device for a new row.
    ///
    /// Heads never fall.
    ///
    /// - Parameter number: for a new device.
    /// - Returns: the device afterwards.
    mutating func move(_ device: KnowledgeID, number: Int64, to timeStamp: TimeStamp) -> DeviceHead {
        head = max(head, timeStamp)
        let position = position(of: device)
        if position < devices.count, devices[position].knowledgeID == device {
            devices[position].head = max(devices[position].head, timeStamp)
            devices[position].indexedFrom = min(devices[position].indexedFrom, timeStamp)
        } else {
            let isIndexed = devices.count >= Self.unindexedDevices
            devices.insert(
                DeviceHead(
                    knowledgeID: device, number: number, head: timeStamp, indexedFrom: isIndexed ? timeStamp : .zero),
                at: position)
            let later = unindexed.firstIndex { $0 >= position } ?? unindexed.count
            for index in later..<unindexed.count { unindexed[index] += 1 }
            if !isIndexed { unindexed.insert(position, at: later) }
        }
        if devices[position].isIndexed { extendIndex(to: devices[position]) }
        return devices[position]
    }

    /// The index of a device, or the one at which to insert it.
    private func position(of device: KnowledgeID) -> Int {
        var low = 0
        var high = devices.count
        while low < high {
            let middle = (low + high) / 2
            if devices[middle].knowledgeID < device { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
