import Postgres
import RecordStore
import SyncModel

/// What owners have, in `weir_owners`.
enum OwnersTable {
    static func usage(
        of owners: [SyncID], _ connection: PostgresConnection, _ statements: SystemStatements
    ) throws -> [OwnerUsage] {
        try usage(in: connection.query(statements.usage, parameters(owners)), of: owners)
    }

    /// The parameters of the statement that reads usage.
    static func parameters(_ owners: [SyncID]) -> PostgresParameters {
        var ids = BinaryArray(.text)
        for owner in owners { ids.append(owner.text) }
        return PostgresParameters([ids])
    }

    static func usage(in rows: borrowing PostgresResult, of owners: [SyncID]) throws -> [OwnerUsage] {
        var usage = Array(repeating: OwnerUsage(), count: owners.count)
        for row in 0..<rows.count { usage[Int(try rows.bigint(row, 0)) - 1] = try self.usage(rows, row) }
        return usage
    }

    /// The numbers behind the first column.
    static func usage(_ rows: borrowing PostgresResult, _ row: Int) throws -> OwnerUsage {
        OwnerUsage(
            rows: try rows.bigint(row, 1), bytes: try rows.bigint(row, 2), deletedRows: try rows.bigint(row, 3),
            deletedBytes: try rows.bigint(row, 4))
    }

    /// The usage of the owners of several steps as arrays, for the statement that writes it.
    static func arrays(_ steps: [StoreStep]) -> PostgresParameters? {
        var owners = BinaryArray(.text)
        var partitions = BinaryArray(.integer)
        var numbers = [BinaryArray(.bigint), BinaryArray(.bigint), BinaryArray(.bigint), BinaryArray(.bigint)]
        for step in steps {
            for (owner, usage) in step.usage {
                owners.append(owner.text)
                partitions.append(Int32(step.partition))
                numbers[0].append(usage.rows)
                numbers[1].append(usage.bytes)
                numbers[2].append(usage.deletedRows)
                numbers[3].append(usage.deletedBytes)
            }
        }
        return owners.count > 0 ? PostgresParameters([owners, partitions] + numbers) : nil
    }
}
