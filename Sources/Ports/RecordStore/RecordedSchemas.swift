import SyncModel

/// The schema versions that a store has recorded for its tables.
///
/// Adapters compare the known versions with them before they change tables.
package struct RecordedSchemas: Sendable {
    /// By ascending ordinal, without gaps.
    package let entries: [SchemaHistory.Entry]
    private let location: String
    private let remedy: String

    /// - Parameters:
    ///   - location: names the store in messages.
    ///   - remedy: what to do about tables with a different epoch.
    /// - Throws: `corrupt` when the ordinals have a gap.
    package init(_ entries: [SchemaHistory.Entry], location: String, remedy: String) throws(RecordStoreError) {
        for (index, entry) in entries.enumerated() where entry.version.ordinal != index + 1 {
            throw RecordStoreError(.corrupt, message: "\(location): weir_schemas has a gap")
        }
        self.entries = entries
        self.location = location
        self.remedy = remedy
    }

    /// The existing tables.
    package var tables: [Table] { entries.last?.schema.tables ?? [] }

    /// The required tables: those of the newest version known or recorded, since another process may have prepared the
    /// tables for versions that this one has not read yet.
    package func wanted(_ schemas: SchemaHistory) -> [Table] {
        let newest = entries.count > schemas.entries.count ? entries.last : schemas.newest
        return newest?.schema.tables ?? []
    }

    /// The versions not yet recorded.
    package func missing(_ schemas: SchemaHistory) -> ArraySlice<SchemaHistory.Entry> {
        schemas.entries.dropFirst(entries.count)
    }

    /// Rejects versions of another epoch, and versions that do more than add.
    ///
    /// - Throws: `incompatibleTables` with what is wrong and what to do.
    package func check(_ schemas: SchemaHistory) throws(RecordStoreError) {
        for (old, new) in zip(entries, schemas.entries)
        where !old.version.hash.utf8.elementsEqual(new.version.hash.utf8) || old.schema != new.schema {
            throw refusal(
                "the tables were prepared with a different epoch: their schema version \(old.version.ordinal) is "
                    + "\(old.version.hash), not \(new.version.hash); \(remedy)")
        }
        for (old, new) in zip(schemas.entries, schemas.entries.dropFirst()) {
            if let problem = Self.problem(from: old.schema, to: new.schema) {
                throw refusal(
                    "schema version \(new.version.ordinal) does more than add to version \(old.version.ordinal): "
                        + "\(problem); rows of older versions must stay readable, so declare what was there before")
            }
        }
    }

    /// What a version changes in an older one besides additions. Policies, lengths and references do not affect
    /// tables.
    private static func problem(from old: Schema, to new: Schema) -> String? {
        for (index, table) in old.tables.enumerated() {
            guard index < new.tables.count, new.tables[index].name.utf8.elementsEqual(table.name.utf8) else {
                return "table \(table.name) is missing or moved"
            }
            let columns = new.tables[index].columns
            for (columnIndex, column) in table.columns.enumerated() {
                guard columnIndex < columns.count, columns[columnIndex].name.utf8.elementsEqual(column.name.utf8) else {
                    return "column \(table.name).\(column.name) is missing or moved"
                }
                let found = columns[columnIndex]
                if found.type != column.type {
                    return "column \(table.name).\(column.name) was \(column.type.name) and is \(found.type.name)"
                }
                if found.isNullable != column.isNullable || found.defaultValue != column.defaultValue {
                    return "column \(table.name).\(column.name) has another default, or takes NULL where it did not"
                }
            }
            if let column = columns.dropFirst(table.columns.count).first(where: \.isRequired) {
                return "column \(table.name).\(column.name) is new and required, and older rows have no value of it"
            }
        }
        return nil
    }

    private func refusal(_ message: String) -> RecordStoreError {
        RecordStoreError(.incompatibleTables, message: "\(location): \(message)")
    }
}
