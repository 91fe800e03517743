import RecordStore
import SQLite
import SyncModel

/// The row of an owner in `weir_owners`, by which a snapshot finds the owners of its partition.
enum OwnerRecord {
    /// Notes the owner's partition at its first row or outcome.
    ///
    /// - Throws: `RecordStoreError` where it is another one than before.
    static func settle(_ owner: SyncID, in partition: Int, _ connection: Connection) throws {
        if let known = try self.partition(of: owner, connection) {
            guard known == partition else {
                throw RecordStoreError(
                    .incompatibleTables,
                    message: "owner \(owner) is in partition \(known) and came in partition \(partition); a history "
                        + "keeps its number of partitions: name another path, or restore the log these tables belong to"
                )
            }
            return
        }
        var statement = try connection.statement("INSERT INTO weir_owners (sync_id, partition) VALUES (?1, ?2)")
        try statement.bind(text: owner.text, at: 1)
        try statement.bind(integer: Int64(partition), at: 2)
        try statement.run()
    }

    private static func partition(of owner: SyncID, _ connection: Connection) throws -> Int? {
        var statement = try connection.statement("SELECT partition FROM weir_owners WHERE sync_id = ?1")
        try statement.bind(text: owner.text, at: 1)
        return try statement.step() ? Int(try statement.integer(at: 0)) : nil
    }
}
