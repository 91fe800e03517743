import Postgres
import RecordStore
import SyncModel

extension PostgresRecordStore {
    /// Names a table that holds a row, with its database; `nil` where all tables of all databases are empty.
    ///
    /// For whoever is to fill tables from nothing.
    package func firstContent() async throws(RecordStoreError) -> String? {
        let tables = try preparedTables()
        for shard in shards {
            let own = SystemTables(schema: shard.settings.schema)
            let kept = [own.partitions, own.owners, own.devices, own.outcomes].map(\.qualifiedName)
            let all = kept + tables.layouts.map { $0.shape(columns: $0.table.columns.count).qualifiedName }
            let filled = try await shard.read { connection in
                try all.first { try connection.queryOnce("SELECT FROM \($0) LIMIT 1").count > 0 }
            }
            if let filled { return "\(shard.place): table \(filled)" }
        }
        return nil
    }
}
