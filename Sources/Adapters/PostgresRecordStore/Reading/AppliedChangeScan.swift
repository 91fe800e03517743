import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// Reads all applied changes of a partition inside one transaction, through a cursor.
struct AppliedChangeScan {
    private let connection: PostgresConnection
    private let settings: ShardSettings
    private let partition: Int
    private let exported: ExportedSnapshot?

    init(
        _ connection: PostgresConnection, _ settings: ShardSettings, of partition: Int, in exported: ExportedSnapshot?
    ) {
        self.connection = connection
        self.settings = settings
        self.partition = partition
        self.exported = exported
    }

    func run(_ body: @escaping ([StoredAppliedChange]) throws -> Void) throws {
        if let exported {
            try exported.begin(on: connection)
        } else {
            try connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        }
        let system = settings.system
        let cursor = try Cursor(
            connection, MigrationNotice(settings), name: "weir_applied",
            """
            SELECT owner.sync_id, found.caller, found.knowledge_id,
                kept.change_id, kept.content, kept.time_stamp, kept.version, kept.deleted, kept.knowledge_id
            FROM \(system.owners.qualifiedName) AS owner
            JOIN \(system.devices.qualifiedName) AS found ON found.owner = owner.sync_id
            JOIN \(system.appliedChanges.qualifiedName) AS kept ON kept.device = found.device
            WHERE owner.partition = \(partition)
            """)
        var chunks = AppliedChangeChunks(body)
        var isAtEnd = false
        while !isAtEnd {
            let rows = try cursor.next()
            isAtEnd = rows.count == 0
            for row in 0..<rows.count {
                let device = Device(
                    caller: try RowReader.id(rows, row, 1), knowledgeID: try RowReader.id(rows, row, 2))
                let key = DeviceKey(owner: try RowReader.id(rows, row, 0), device: device)
                let columns = try AppliedChangesTable.columns(rows, row, from: 3)
                try chunks.append(StoredAppliedChange(key: key, change: try columns.change(of: key)))
            }
            cursor.adaptPageSize(rows: rows.count, bytes: rows.count * 128)
        }
        try chunks.flush()
        try connection.execute("COMMIT")
    }
}
