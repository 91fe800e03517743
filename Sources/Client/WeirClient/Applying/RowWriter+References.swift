/// Columns that name keys of synced rows: they have them as the parents' tables do.
///
/// Values of the column would show it as well, but a new device has none, nor always the parents.
extension RowWriter {
    /// How a column has the keys that it names.
    struct Reference {
        /// `nil` for a uuid as text.
        let spelling: ValueSpelling?
        /// The parent's keys that are a uuid, in lower case or in upper case: the server has the reference in lower case, and ids as they
        /// were written.
        let selectKey: Statement?
    }

    /// - Returns: `nil` for a column that names no key, or has it as the server does.
    static func reference(
        of column: CapturedTable.Column, _ type: ColumnType, in table: CapturedTable, _ file: ClientFile
    ) throws -> Reference? {
        guard type == .text || type == .uuid else { return nil }
        for foreign in table.definition.foreignKeys {
            guard let parent = file.tables.first(where: { foreign.isReference(to: $0) }) else { continue }
            let isNamed = zip(foreign.columns, foreign.parentColumns).contains {
                foldedName($0) == foldedName(column.name) && foldedName($1) == foldedName(parent.definition.key.name)
            }
            guard isNamed else { continue }
            switch parent.definition.keyKind {
            case .uuid: return Reference(spelling: ValueSpelling(type: type, form: .uuidBlob), selectKey: nil)
            case .integer: return Reference(spelling: ValueSpelling(type: type, form: .number), selectKey: nil)
            case .text where type == .uuid:
                let query = "SELECT \(parent.quotedKey) FROM \(parent.quotedName) WHERE \(parent.quotedKey) IN (?1, ?2)"
                return Reference(spelling: nil, selectKey: try file.database.statement(query))
            case .text: return Reference(spelling: ValueSpelling(type: type, form: .canonical), selectKey: nil)
            }
        }
        return nil
    }

    /// A value of the server as a column has it.
    ///
    /// - Parameter present: how the row spells it now, which is kept where the column names no key.
    func value(of canonical: ValueSpelling.Canonical, inColumn index: Int, like present: ValueSpelling?) throws
        -> SQLValue
    {
        guard let reference = references[index] else { return (present ?? spellings[index]).value(of: canonical) }
        if let spelling = reference.spelling { return spelling.value(of: canonical) }
        if case .string(let uuid) = canonical, let key = try parentKey(uuid, reference) { return key }
        let spelling = present ?? spellings[index]
        return (spelling.form == .uuidBlob ? ValueSpelling(type: .uuid, form: .canonical) : spelling).value(
            of: canonical)
    }

    /// The key of the parent that is there.
    private func parentKey(_ uuid: [UInt8], _ reference: Reference) throws -> SQLValue? {
        let cases = [UUIDText.lowerCase(uuid), UUIDText.upperCase(uuid)]
        var key: SQLValue?
        try reference.selectKey?.rows(cases.map { .text($0) }) { key = $0.value(at: 0) }
        return key
    }

    /// Whether a reference may be spelled in another case than the key that it names, where the row came first.
    var mayDifferInCase: Bool { references.contains { $0?.selectKey != nil } }

    /// Spells references as the keys of the parents that have come since.
    ///
    /// - Throws: `Unwritable`; then nothing was changed.
    func respellReferences(of key: SQLValue) throws {
        guard let row = try row(key) else { return }
        let respelled = try columns.indices.compactMap { index -> NamedValue? in
            let column = columns[index].column
            guard let reference = references[index], reference.selectKey != nil,
                case .text(let uuid)? = row.first(where: { $0.column.number == column.number })?.value,
                let key = try parentKey(uuid, reference)
            else { return nil }
            return key == .text(uuid) ? nil : (column, key)
        }
        try update(key, respelled)
    }
}
