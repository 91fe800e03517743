import CanonicalValues
import RecordStore
import SyncModel
import Synchronization

/// The database of a store in memory, which several stores may share.
package final class MemoryTables: Sendable {
    struct Partition {
        var position: StoredPosition?
        var rows: [RowKey: OrderedRow] = [:]
        var progress: [DeviceKey: (highest: Int64, outcomes: [Outcome])] = [:]
        var applied: [AppliedChangeKey: AppliedChange] = [:]
        var usage: [SyncID: OwnerUsage] = [:]
    }

    struct Content {
        /// The epoch of the tables; `nil` before they are created.
        var epoch: String?
        /// The schema versions whose columns the tables have.
        var schemas = SchemaHistory()
        var partitions: [Int: Partition] = [:]
    }

    let content = Mutex(Content())

    package init() {}

    package func copy() -> MemoryTables {
        let copy = MemoryTables()
        let now = content.withLock { $0 }
        copy.content.withLock { $0 = now }
        return copy
    }

    /// Goes back to a copy, like a database that lost its newest transactions.
    package func fallBack(to copy: MemoryTables) {
        let then = copy.content.withLock { $0 }
        content.withLock { $0 = then }
    }
}

extension MemoryTables.Content {
    /// Adds new schema versions.
    mutating func prepare(_ schemas: SchemaHistory, epoch: String) throws(RecordStoreError) {
        if let own = self.epoch, !own.utf8.elementsEqual(epoch.utf8) {
            throw .incompatible("the tables have the epoch \(own), not \(epoch)")
        }
        let known = self.schemas.entries
        for (old, new) in zip(known, schemas.entries) where old.schema != new.schema {
            throw .incompatible("version \(old.version.ordinal) of the tables is a different schema")
        }
        for (older, newer) in zip(schemas.entries, schemas.entries.dropFirst()) {
            do {
                guard try older.schema.evolved(to: newer.schema.tables) == newer.schema else {
                    throw RecordStoreError.incompatible(
                        "version \(newer.version.ordinal) has its tables in another order")
                }
            } catch let error as RecordStoreError {
                throw error
            } catch {
                throw .incompatible("version \(newer.version.ordinal): \(error)")
            }
        }
        for column in schemas.entries.flatMap({ $0.schema.tables.flatMap(\.columns) }) { try checkDefault(of: column) }
        if schemas.entries.count > known.count { self.schemas = schemas }
        self.epoch = epoch
    }

    mutating func commit(_ steps: [StoreStep]) throws(RecordStoreError) {
        for step in steps {
            guard partitions[step.partition]?.position == step.expected else {
                throw RecordStoreError(.fenced, message: "partition \(step.partition) is at another position")
            }
            for row in step.rows { try check(row) }
        }
        for step in steps {
            var partition = partitions[step.partition, default: MemoryTables.Partition()]
            partition.position = step.position
            for row in step.rows { partition.rows[row.key] = row.extended(by: partition.rows[row.key]) }
            for stored in step.outcomes {
                var (highest, outcomes) = partition.progress[stored.key] ?? (0, [])
                highest = max(highest, stored.outcome.batch)
                outcomes.append(stored.outcome)
                partition.progress[stored.key] = (highest, outcomes.suffix(Outcome.keptPerDevice))
            }
            for stored in step.applied { partition.applied[stored.changeKey] = stored.change }
            for (owner, usage) in step.usage { partition.usage[owner] = usage }
            partitions[step.partition] = partition
        }
    }

    private func checkDefault(of column: Column) throws(RecordStoreError) {
        guard let value = column.defaultValue else { return }
        var reader = CanonicalValueReader()
        do {
            try value.withUnsafeBufferPointer { try reader.read($0, as: column.type) { _ in } }
        } catch {
            throw .incompatible("the default of \(column.name): \(error)")
        }
    }

    private func check(_ row: OrderedRow) throws(RecordStoreError) {
        let columns = schemas.newest?.schema.tables[row.key.table].columns ?? []
        var isFit = row.values.count <= columns.count
        row.values.forEachColumn { column, json in
            if json.isEmpty
                || (column < columns.count && !columns[column].isNullable && json.elementsEqual("null".utf8))
            {
                isFit = false
            }
        }
        guard isFit else {
            throw RecordStoreError(.refusedRow(row.key), message: "a value of the row does not fit its column")
        }
    }

    func schema(_ ordinal: Int) throws(RecordStoreError) -> Schema {
        if ordinal == 0 { return Schema(tables: []) }
        guard let entry = schemas[ordinal] else {
            throw .incompatible("the tables were not prepared for version \(ordinal)")
        }
        return entry.schema
    }
}

extension RecordStoreError {
    static func incompatible(_ message: String) -> RecordStoreError {
        RecordStoreError(.incompatibleTables, message: message)
    }
}

extension OrderedRow {
    /// With the later columns of the row that it replaces: a row of an older schema version leaves them unchanged.
    fileprivate func extended(by old: OrderedRow?) -> OrderedRow {
        guard let old, old.values.count > values.count else { return self }
        var row = self
        row.values = old.values.merged(with: values)
        return row
    }

    /// With the columns of a schema version; `nil` where it has no such table.
    func shown(in schema: Schema) -> OrderedRow? {
        guard schema.tables.indices.contains(key.table) else { return nil }
        let table = schema.tables[key.table]
        var row = self
        if values.count > table.columns.count {
            row.values = RowValues()
            for range in values.ranges.prefix(table.columns.count) { row.values.append(values.bytes[range]) }
        } else {
            row.values = values.lifted(to: table)
        }
        return row
    }
}
