import RecordStore
import SyncModel

/// The schema versions that a store's tables are prepared for, as recorded in `weir_schemas`.
package struct RecordedSchemas: Sendable {
    /// By rising ordinal, without gaps.
    package let entries: [SchemaHistory.Entry]
    private let database: String
    private let remedy: String

    /// - Parameters:
    ///   - database: the database, for messages.
    ///   - remedy: what to do about tables with a different epoch.
    /// - Throws: `corrupt` if the ordinals have a gap.
    package init(_ entries: [SchemaHistory.Entry], database: String, remedy: String) throws(RecordStoreError) {
        for (index, entry) in entries.enumerated() where entry.version.ordinal != index + 1 {
            throw RecordStoreError(.corrupt, message: "\(database): weir_schemas has a gap")
        }
        self.entries = entries
        self.database = database
        self.remedy = remedy
    }

    /// The existing tables.
    package var tables: [Table] { entries.last?.schema.tables ?? [] }

    /// The tables of the newest known or recorded version: another process may have prepared the tables for versions that this
    /// one has not read yet.
    package func wanted(_ schemas: SchemaHistory) -> [Table] {
        let newest = entries.count > schemas.entries.count ? entries.last : schemas.newest
        return newest?.schema.tables ?? []
    }

    /// The versions that are not recorded yet.
    package func missing(_ schemas: SchemaHistory) -> ArraySlice<SchemaHistory.Entry> {
        schemas.entries.dropFirst(entries.count)
    }

    /// Rejects tables with a different epoch.
    ///
    /// - Parameter recorded: the epoch in the tables.
    package func checkEpoch(_ recorded: String, is epoch: String) throws(RecordStoreError) {
        guard !recorded.utf8.elementsEqual(epoch.utf8) else { return }
        throw .incompatible(
            "the tables have epoch \(recorded), the log has epoch \(epoch); \(remedy)", database: database)
    }

    /// Rejects the versions of a different epoch, and versions that do more than add.
    ///
    /// - Throws: `incompatibleTables` with what is wrong and what to do.
    package func check(_ schemas: SchemaHistory) throws(RecordStoreError) {
        for (old, new) in zip(entries, schemas.entries)
        where !old.version.hash.utf8.elementsEqual(new.version.hash.utf8) || old.schema != new.schema {
            throw .incompatible(
                "the tables were prepared for a different epoch, whose schema version \(old.version.ordinal) is "
                    + "\(old.version.hash), not \(new.version.hash); \(remedy)", database: database)
        }
        for (old, new) in zip(schemas.entries, schemas.entries.dropFirst()) {
            if let problem = Self.problem(from: old.schema, to: new.schema) {
                throw .incompatible(
                    "schema version \(new.version.ordinal) does more than add to version \(old.version.ordinal): "
                        + "\(problem); rows of older versions must stay readable, so restore the earlier declaration",
                    database: database)
            }
        }
    }

    /// What a version changes of an older one besides adding to it; policies, lengths and references do not affect the tables.
    private static func problem(from old: Schema, to new: Schema) -> String? {
        for (index, table) in old.tables.enumerated() {
            guard index < new.tables.count, new.tables[index].name.utf8.elementsEqual(table.name.utf8) else {
                return "table \(table.name) is missing or moved"
            }
            let columns = new.tables[index].columns
            for (number, column) in table.columns.enumerated() {
                guard number < columns.count, columns[number].name.utf8.elementsEqual(column.name.utf8) else {
                    return "column \(table.name).\(column.name) is missing or moved"
                }
                if columns[number].type != column.type {
                    return "column \(table.name).\(column.name) was \(column.type.name) and is "
                        + columns[number].type.name
                }
                if columns[number].isNullable != column.isNullable
                    || columns[number].defaultValue != column.defaultValue
                {
                    return "column \(table.name).\(column.name) has another default, or takes NULL where it did not"
                }
            }
            if let column = columns.dropFirst(table.columns.count).first(where: \.isRequired) {
                return "column \(table.name).\(column.name) is new and required, and older rows have no value of it"
            }
        }
        return nil
    }
}
