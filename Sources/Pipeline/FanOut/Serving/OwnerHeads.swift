import SyncModel

/// How far an owner's stream goes, in all and for each device that made rows: all that an idle pull needs.
struct OwnerHeads: Sendable, Hashable {
    /// A device of the owner.
    struct DeviceHead: Sendable, Hashable {
        /// Its name.
        let knowledgeID: KnowledgeID
        /// Its number in the file.
        let number: Int64
        /// The newest timeStamp among the rows that it made.
        var head: TimeStamp
    }

    /// The owner's number in the file, 0 when it has none.
    let number: Int64
    /// The newest timeStamp among the owner's rows.
    private(set) var head: TimeStamp
    /// The devices, by the bytes of their names.
    private(set) var devices: [DeviceHead]

    /// The heads of an owner without rows.
    init(number: Int64 = 0) {
        self.number = number
        head = .zero
        devices = []
    }

    /// The heads as a file has them: each device once.
    init(number: Int64, head: TimeStamp, devices: [DeviceHead]) {
        self.number = number
        self.head = head
        self.devices = devices.sorted { $0.knowledgeID < $1.knowledgeID }
    }

    /// The device with this name.
    subscript(device: KnowledgeID) -> DeviceHead? {
        let position = position(of: device)
        guard position < devices.count, devices[position].knowledgeID == device else { return nil }
        return devices[position]
    }

    /// Takes in that a device's rows now go up to a timeStamp; heads never fall.
    mutating func move(_ device: KnowledgeID, number: Int64, to timeStamp: TimeStamp) {
        head = max(head, timeStamp)
        let position = position(of: device)
        if position < devices.count, devices[position].knowledgeID == device {
            devices[position].head = max(devices[position].head, timeStamp)
        } else {
            devices.insert(DeviceHead(knowledgeID: device, number: number, head: timeStamp), at: position)
        }
    }

    /// Where a device stands, or would.
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
