import SQLite
import SyncModel

extension StreamFile {
    func readOwners() throws -> [SyncID: OwnerHeads] {
        var devices: [Int64: [OwnerHeads.DeviceHead]] = [:]
        var knowledge = try connection.statement(
            "SELECT owner_no, device_no, knowledge_id, head, checksum, indexed_from FROM knowledge")
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
                throw StreamFailure.damaged("the head of an owner differs from the heads of its devices")
            }
            result[owner.id] = heads
        }
        guard devices.isEmpty else { throw StreamFailure.damaged("a device has no owner") }
        return result
    }

    /// Writes the changed heads of an owner.
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
            guard connection.changes == 1 else { throw StreamFailure.damaged("the record of an owner is missing") }
        }
    }

    private func writeDevice(
        _ device: OwnerHeads.DeviceHead, owner: Int64, from old: OwnerHeads.DeviceHead?, _ state: inout FileState
    ) throws {
        if let old { state.remove(FileRecords.checksum(of: old, owner: owner)) }
        let checksum = FileRecords.checksum(of: device, owner: owner)
        state.add(checksum)
        if old == nil {
            var statement = try connection.statement(
                """
                INSERT INTO knowledge(device_no, head, checksum, indexed_from, owner_no, knowledge_id) \
                VALUES(?1, ?2, ?3, ?4, ?5, ?6)
                """)
            try bind(device.number, device.head, checksum, to: &statement)
            try statement.bind(integer: device.indexedFrom.rawValue, at: 4)
            try statement.bind(integer: owner, at: 5)
            try statement.bind(id: device.knowledgeID, at: 6)
            try statement.run()
        } else {
            var statement = try connection.statement(
                "UPDATE knowledge SET head = ?2, checksum = ?3, indexed_from = ?4 WHERE device_no = ?1")
            try bind(device.number, device.head, checksum, to: &statement)
            try statement.bind(integer: device.indexedFrom.rawValue, at: 4)
            try statement.run()
            guard connection.changes == 1 else { throw StreamFailure.damaged("the record of a device is missing") }
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
