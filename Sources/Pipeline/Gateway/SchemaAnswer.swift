import JSONText
import SyncModel

/// The body of `GET /v1/schema`.
enum SchemaAnswer {
    /// The newest version, and what requests are held to.
    static func body(epoch: String, entry: SchemaHistory.Entry, limits: SyncLimits, keepAlive: Duration) -> [UInt8] {
        var writer = JSONWriter(capacity: 4096)
        writer.object { writer in
            writer.name("epoch")
            writer.value(epoch)
            writer.name("schemaVersion")
            writer.value(entry.version.hash)
            writer.name("tables")
            writer.array { writer in
                for (table, rank) in zip(entry.schema.tables, entry.schema.ranks) { writer.table(table, rank: rank) }
            }
            writer.name("limits")
            writer.object { writer in
                writer.name("maxBatchBytes")
                writer.value(limits.maxBatchBytes)
                writer.name("maxChanges")
                writer.value(limits.maxChanges)
                writer.name("maxValueBytes")
                writer.value(limits.maxValueBytes)
                writer.name("maxLimit")
                writer.value(Envelope.maximumLimit)
                writer.name("maxWait")
                writer.value(Envelope.maximumWait)
                writer.name("keepAlive")
                writer.value(keepAlive.components.seconds)
            }
        }
        return writer.take()
    }
}

extension JSONWriter {
    fileprivate mutating func table(_ table: Table, rank: Int) {
        object { writer in
            writer.name("name")
            writer.value(table.name)
            writer.name("policy")
            writer.value(table.policy.rawValue)
            writer.name("rank")
            writer.value(rank)
            writer.name("columns")
            writer.array { writer in
                for column in table.columns { writer.column(column) }
            }
        }
    }

    private mutating func column(_ column: Column) {
        object { writer in
            writer.name("name")
            writer.value(column.name)
            writer.name("type")
            writer.value(column.type.name)
            writer.name("nullable")
            writer.value(column.isNullable)
            if let value = column.defaultValue {
                writer.name("default")
                writer.raw(value)
            }
            if let length = column.maximumLength {
                writer.name("length")
                writer.value(length)
            }
            if let table = column.references {
                writer.name("references")
                writer.value(table)
            }
        }
    }
}
