import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// `weir_applied_changes`: the applied changes of each device that had a `changeId`.
enum AppliedChangesTable {
    static func read(
        _ keys: [AppliedChangeKey], _ connection: PostgresConnection, _ statements: SystemStatements
    ) throws -> [AppliedChange?] {
        try changes(in: connection.query(statements.appliedChanges, parameters(keys)), of: keys)
    }

    /// The parameters of the statement that reads applied changes.
    static func parameters(_ keys: [AppliedChangeKey]) -> PostgresParameters {
        var devices = DeviceKeyArrays()
        var ids = BinaryArray(.uuid)
        for key in keys {
            devices.append(key.device)
            ids.append(bytes: key.id.bytes.span)
        }
        return PostgresParameters(devices.arrays + [ids])
    }

    static func changes(
        in rows: borrowing PostgresResult, of keys: [AppliedChangeKey]
    ) throws -> [AppliedChange?] {
        var changes: [AppliedChange?] = Array(repeating: nil, count: keys.count)
        for row in 0..<rows.count {
            let index = Int(try rows.bigint(row, 0)) - 1
            changes[index] = try columns(rows, row, from: 1).change(of: keys[index].device)
        }
        return changes
    }

    /// - Parameter first: the index of the column `change_id`.
    static func columns(
        _ rows: borrowing PostgresResult, _ row: Int, from first: Int
    ) throws -> AppliedChangeColumns {
        AppliedChangeColumns(
            changeID: rows.bytes(row, first), content: rows.bytes(row, first + 1),
            timeStamp: try rows.bigint(row, first + 2), version: try rows.bigint(row, first + 3),
            isOfTombstone: try rows.boolean(row, first + 4),
            knowledgeID: rows.isNull(row, first + 5) ? nil : try rows.text(row, first + 5))
    }

    /// New applied changes as arrays, for the statement that writes them.
    static func arrays(_ changes: [StoredAppliedChange]) -> PostgresParameters {
        var devices = DeviceKeyArrays()
        var ids = BinaryArray(.uuid)
        var contents = BinaryArray(.uuid)
        var timeStamps = BinaryArray(.bigint)
        var versions = BinaryArray(.bigint)
        var areOfTombstones = BinaryArray(.boolean)
        var knowledgeIDs = BinaryArray(.text)
        for stored in changes {
            let columns = AppliedChangeColumns(stored)
            devices.append(stored.key)
            ids.append(bytes: columns.changeID.span)
            contents.append(bytes: columns.content.span)
            timeStamps.append(columns.timeStamp)
            versions.append(columns.version)
            areOfTombstones.append(columns.isOfTombstone)
            if let knowledgeID = columns.knowledgeID {
                knowledgeIDs.append(knowledgeID)
            } else {
                knowledgeIDs.appendNull()
            }
        }
        return PostgresParameters(
            devices.arrays + [ids, contents, timeStamps, versions, areOfTombstones, knowledgeIDs])
    }
}

/// Keys of devices as arrays: owner, caller, knowledgeId.
struct DeviceKeyArrays {
    private(set) var arrays = [BinaryArray(.text), BinaryArray(.text), BinaryArray(.text)]

    mutating func append(_ key: DeviceKey) {
        arrays[0].append(key.owner.text)
        arrays[1].append(key.device.caller.text)
        arrays[2].append(key.device.knowledgeID.text)
    }
}
