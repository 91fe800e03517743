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
    private(set) var devices = DeviceHeads()
    /// Those that are not in the index by time, sorted.
    private(set) var unindexed: [KnowledgeID] = []
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
        self.devices = DeviceHeads(devices)
        for device in self.devices {
            if device.isIndexed { extendIndex(to: device) } else { unindexed.append(device.knowledgeID) }
        }
    }

    subscript(device: KnowledgeID) -> DeviceHead? { devices[device] }

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
        let count = devices.count
        let isIndexed = count >= Self.unindexedDevices
        let moved = devices.update(device) { known in
            guard var moved = known else {
                return DeviceHead(
                    knowledgeID: device, number: number, head: timeStamp, indexedFrom: isIndexed ? timeStamp : .zero)
            }
            moved.head = max(moved.head, timeStamp)
            moved.indexedFrom = min(moved.indexedFrom, timeStamp)
            return moved
        }
        if devices.count > count, !isIndexed {
            unindexed.insert(device, at: unindexed.firstIndex { $0 > device } ?? unindexed.count)
        }
        if moved.isIndexed { extendIndex(to: moved) }
        return moved
    }
}
