import RecordStore
import RelationalTables
import SQLite
import SyncModel

/// `weir_applied_changes`: the applied changes of each device that had a `changeId`.
enum AppliedChangesTable {
    static func write(_ changes: [StoredAppliedChange], _ connection: Connection) throws {
        var devices: [DeviceKey: Int64] = [:]
        for stored in changes {
            let device: Int64
            if let known = devices[stored.key] {
                device = known
            } else {
                device = try DevicesTable.number(of: stored.key, adding: true, connection) ?? 0
                devices[stored.key] = device
            }
            try write(AppliedChangeColumns(stored), of: device, connection)
        }
    }

    private static func write(_ columns: AppliedChangeColumns, of device: Int64, _ connection: Connection) throws {
        // Prepared once for each connection.
        var statement = try connection.statement(
            """
            INSERT OR REPLACE INTO weir_applied_changes
                (device, change_id, content, time_stamp, version, deleted, knowledge_id)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """)
        try statement.bind(integer: device, at: 1)
        try statement.bind(blob: columns.changeID, at: 2)
        try statement.bind(blob: columns.content, at: 3)
        try statement.bind(integer: columns.timeStamp, at: 4)
        try statement.bind(integer: columns.version, at: 5)
        try statement.bind(integer: columns.isOfTombstone ? 1 : 0, at: 6)
        if let knowledgeID = columns.knowledgeID {
            try statement.bind(text: knowledgeID, at: 7)
        } else {
            try statement.bindNull(at: 7)
        }
        try statement.run()
    }

    static func read(_ keys: [AppliedChangeKey], _ connection: Connection) throws -> [AppliedChange?] {
        var devices: [DeviceKey: Int64?] = [:]
        return try keys.map { key in
            let device: Int64?
            if let known = devices[key.device] {
                device = known
            } else {
                device = try DevicesTable.number(of: key.device, adding: false, connection)
                devices[key.device] = .some(device)
            }
            guard let device else { return nil }
            return try read(key, of: device, connection)
        }
    }

    private static func read(
        _ key: AppliedChangeKey, of device: Int64, _ connection: Connection
    ) throws -> AppliedChange? {
        var statement = try connection.statement(
            """
            SELECT change_id, content, time_stamp, version, deleted, knowledge_id FROM weir_applied_changes
            WHERE device = ?1 AND change_id = ?2
            """)
        try statement.bind(integer: device, at: 1)
        try statement.bind(blob: key.id.bytes, at: 2)
        guard try statement.step() else { return nil }
        return try columns(statement, from: 0).change(of: key.device)
    }

    /// Reads those of all owners of a partition, owner by owner.
    static func readAll(
        of partition: Int, _ connection: Connection, _ body: @escaping ([StoredAppliedChange]) throws -> Void
    ) throws {
        var chunks = AppliedChangeChunks(body)
        var statement = try connection.prepare(
            """
            SELECT owner.sync_id, found.caller, found.knowledge_id,
                kept.change_id, kept.content, kept.time_stamp, kept.version, kept.deleted, kept.knowledge_id
            FROM weir_owners AS owner CROSS JOIN weir_devices AS found ON found.owner = owner.sync_id
            CROSS JOIN weir_applied_changes AS kept ON kept.device = found.device
            WHERE owner.partition = ?1
            """)
        try statement.bind(integer: Int64(partition), at: 1)
        while try statement.step() {
            let device = Device(
                caller: try RowReader.id(statement, at: 1), knowledgeID: try RowReader.id(statement, at: 2))
            let key = DeviceKey(owner: try RowReader.id(statement, at: 0), device: device)
            try chunks.append(
                StoredAppliedChange(key: key, change: try columns(statement, from: 3).change(of: key)))
        }
        try chunks.flush()
    }

    private static func columns(_ statement: borrowing Statement, from first: Int) throws -> AppliedChangeColumns {
        AppliedChangeColumns(
            changeID: try statement.bytes(at: first), content: try statement.bytes(at: first + 1),
            timeStamp: try statement.integer(at: first + 2), version: try statement.integer(at: first + 3),
            isOfTombstone: try statement.integer(at: first + 4) != 0,
            knowledgeID: statement.isNull(at: first + 5) ? nil : try statement.text(at: first + 5))
    }
}
