import SyncModel

/// The newest timeStamps of an owner's stream, in total and per creating device: all that an idle pull needs.
struct OwnerHeads: Sendable, Hashable {
    struct DeviceHead: Sendable, Hashable {
        let knowledgeID: KnowledgeID
        /// The number in the file.
        let number: Int64
        /// The newest timeStamp of the rows that it created.
        var head: TimeStamp
    }

    /// The owner's number in the file; 0 for an owner that is not in the file.
    let number: Int64
    private(set) var head: TimeStamp
    /// Sorted by knowledgeId.
    private(set) var devices: [DeviceHead]

    init(number: Int64 = 0) {
        self.number = number
        head = .zero
        devices = []
    }

    /// - Parameter devices: each device once.
    init(number: Int64, head: TimeStamp, devices: [DeviceHead]) {
        self.number = number
        self.head = head
        self.devices = devices.sorted { $0.knowledgeID < $1.knowledgeID }
    }

    subscript(device: KnowledgeID) -> DeviceHead? {
        let position = position(of: device)
        guard position < devices.count, devices[position].knowledgeID == device else { return nil }
        return devices[position]
    }

    /// Advances the head of a device.
    ///
    /// Heads never fall.
    mutating func move(_ device: KnowledgeID, number: Int64, to timeStamp: TimeStamp) {
        head = max(head, timeStamp)
        let position = position(of: device)
        if position < devices.count, devices[position].knowledgeID == device {
            devices[position].head = max(devices[position].head, timeStamp)
        } else {
            devices.insert(DeviceHead(knowledgeID: device, number: number, head: timeStamp), at: position)
        }
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
