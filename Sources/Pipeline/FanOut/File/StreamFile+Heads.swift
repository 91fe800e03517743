import SQLite
import SyncModel

extension StreamFile {
    /// Reads the heads of all owners.
    func readOwners() throws -> [SyncID: OwnerHeads] {
        var devices: [Int64: [OwnerHeads.DeviceHead]] = [:]
        var knowledge = try connection.statement(
            "SELECT owner_no, device_no, knowledge_id, head, checksum FROM knowledge")
        while try knowledge.step() {
            devices[try knowledge.integer(at: 0), default: []].append(try FileRecords.device(knowledge))
        }
        var result: [SyncID: OwnerHeads] = [:]
        var owners = try connection.statement("SELECT owner_no, sync_id, head, checksum FROM owners")
        while try owners.step() {
            let owner = try FileRecords.owner(owners)
            let heads = OwnerHeads(
                number: owner.number, head: owner.head, devices: devices.removeValue(forKey: owner.number) ?? [])
            guard heads.devices.reduce(.zero, { max($0, $1.head) }) == owner.head else {
                throw StreamFailure.damaged("the head of an owner is not that of its devices")
            }
            result[owner.id] = heads
        }
        guard devices.isEmpty else { throw StreamFailure.damaged("devices without an owner") }
        return result
    }

    /// Writes the heads of an owner that a transaction touched.
    func write(_ touched: TouchedOwner, of owner: SyncID, _ state: inout FileState) throws {
        let number = touched.heads.number
        for (device, old) in touched.moved {
            guard let moved = touched.heads[device] else { continue }
            try writeDevice(moved, owner: number, from: old, &state)
        }
        if !touched.isNew, touched.heads.head == touched.oldHead { return }
        if !touched.isNew { state.remove(FileRecords.checksum(ofOwner: number, touched.oldHead, owner)) }
        let checksum = FileRecords.checksum(ofOwner: number, touched.heads.head, owner)
        state.add(checksum)
        if touched.isNew {
            var statement = try connection.statement(
                "INSERT INTO owners(owner_no, head, checksum, sync_id) VALUES(?1, ?2, ?3, ?4)")
            try bind(number, touched.heads.head, checksum, to: &statement)
            try statement.bind(id: owner, at: 4)
            try statement.run()
        } else {
            var statement = try connection.statement("UPDATE owners SET head = ?2, checksum = ?3 WHERE owner_no = ?1")
            try bind(number, touched.heads.head, checksum, to: &statement)
            try statement.run()
            guard connection.changes == 1 else { throw StreamFailure.damaged("the record of an owner is gone") }
        }
    }

    private func writeDevice(
        _ device: OwnerHeads.DeviceHead, owner: Int64, from old: TimeStamp?, _ state: inout FileState
    ) throws {
        if let old { state.remove(FileRecords.checksum(ofDevice: device.number, owner, old, device.knowledgeID)) }
        let checksum = FileRecords.checksum(ofDevice: device.number, owner, device.head, device.knowledgeID)
        state.add(checksum)
        if old == nil {
            var statement = try connection.statement(
                """
                INSERT INTO knowledge(device_no, head, checksum, owner_no, knowledge_id) VALUES(?1, ?2, ?3, ?4, ?5)
                """)
            try bind(device.number, device.head, checksum, to: &statement)
            try statement.bind(integer: owner, at: 4)
            try statement.bind(id: device.knowledgeID, at: 5)
            try statement.run()
        } else {
            var statement = try connection.statement(
                "UPDATE knowledge SET head = ?2, checksum = ?3 WHERE device_no = ?1")
            try bind(device.number, device.head, checksum, to: &statement)
            try statement.run()
            guard connection.changes == 1 else { throw StreamFailure.damaged("the record of a device is gone") }
        }
    }

    private func bind(_ number: Int64, _ head: TimeStamp, _ checksum: Int64, to statement: inout Statement)
        throws(SQLiteError)
    {
        try statement.bind(integer: number, at: 1)
        try statement.bind(integer: head.rawValue, at: 2)
        try statement.bind(integer: checksum, at: 3)
    }
}

/// An owner whose heads a transaction moved, or that it met first.
struct TouchedOwner: Sendable {
    /// The heads after it.
    var heads: OwnerHeads
    /// Whether the file does not have the owner yet.
    let isNew: Bool
    /// The owner's head before.
    let oldHead: TimeStamp
    /// The devices that moved, with their heads before; `nil` for one that is new.
    var moved: [KnowledgeID: TimeStamp?] = [:]

    /// Begins with what there was.
    init(_ heads: OwnerHeads, isNew: Bool) {
        self.heads = heads
        self.isNew = isNew
        oldHead = heads.head
    }

    /// Takes in a row.
    ///
    /// - Parameter nextDevice: the number that a new device gets.
    /// - Returns: the device's number.
    mutating func move(_ device: KnowledgeID, to timeStamp: TimeStamp, nextDevice: inout Int64) -> Int64 {
        let known = heads[device]
        if moved.index(forKey: device) == nil { moved.updateValue(known?.head, forKey: device) }
        let number = known?.number ?? nextDevice
        if known == nil { nextDevice += 1 }
        heads.move(device, number: number, to: timeStamp)
        return number
    }
}
