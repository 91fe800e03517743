import JSONText

/// What is to be sent of a row, derived from what the row is now and what the server is known to have.
///
/// | the row | the server's row | the change |
/// |---|---|---|
/// | exists | unknown | creation, with every column |
/// | exists | live, and pulled beneath its insertion | the same: the app has never seen that row, so `base` is 0, and the server decides |
/// | exists | live | update of the columns changed; every column, on condition of `base`, if it was inserted again |
/// | exists | deleted | creation again, with every column, based on the tombstone; on condition of it if the row was inserted over it |
/// | is gone | live | deletion; on condition of `base` if it may have been done before, or is that of a row that the app has not seen |
/// | is gone | unknown or deleted | none |
/// | is gone, and its deletion was not captured | any | none |
enum RowChange: Equatable {
    case create(base: Int64, isConditional: Bool = false)
    /// With the numbers of the columns.
    case update(base: Int64, columns: Set<Int>)
    case rewrite(base: Int64)
    case delete(base: Int64, isConditional: Bool = false)

    var isDeletion: Bool { if case .delete = self { true } else { false } }
}

/// An edit of a row as it is stored, beside the row as it is now.
struct PendingRow {
    let key: SQLValue
    let change: RowChange?
    /// The row's values, in the order of the table's columns; empty for a deletion.
    let values: [SQLValue]
    /// When the row was last changed, in RFC 3339.
    let updatedAt: String
    /// The row's owner, if it is not the account's.
    var owner: String?
    /// Columns that were changed and that the server does not have.
    let unknown: [CapturedTable.Column]
    /// Whether it was inserted under the key of a row that was deleted before, and is at the server.
    let isOverTombstone: Bool

    /// Reads the edit of the row with this key.
    ///
    /// - Parameters:
    ///   - server: the server's table, whose columns count; all of them for one that the server does not have.
    ///   - query: ``query(_:)`` of the table.
    /// - Returns: `nil` if it has none.
    init?(
        _ key: SQLValue, of table: CapturedTable, as server: ServerSchema.Table?, query: String, in database: Database
    ) throws {
        let (first, count) = (Self.fixed, table.columns.count)
        let isKnown = table.columns.map { server?.isKnown($0.name) ?? true }
        let known = (0..<count).filter { isKnown[$0] }
        let row = try database.map(query, [key]) { row in
            (
                exists: row.integer(at: 0) == 1, base: row.isNull(at: 1) ? nil : row.integer(at: 1),
                version: row.integer(at: 2), isTombstone: row.integer(at: 3) == 1,
                isInserted: row.integer(at: 4) == -1, wasSent: row.integer(at: 5) == 1,
                isTouched: (0..<table.words).contains { row.integer(at: first + 2 * count + $0) != 0 },
                updatedAt: row.string(at: 6), owner: row.isNull(at: 7) ? nil : row.string(at: 7),
                isAdopted: row.integer(at: 8) == 1,
                values: (0..<count).map { row.value(at: first + $0) },
                before: (0..<count).map { row.value(at: first + count + $0) },
                isChanged: table.columns.map { row.integer(at: first + 2 * count + $0.word) & $0.bit != 0 },
                wasThere: row.integer(at: first + 2 * count + table.words) == -1,
                // Set column by column where the server's row was pulled beneath the edit; a deletion sets all of them (-1).
                isPulled: row.integer(at: first + 2 * count + table.words) != -1
                    && known.allSatisfy {
                        let column = table.columns[$0]
                        return row.integer(at: first + 2 * count + table.words + column.word) & column.bit != 0
                    }
            )
        }.first
        guard let row else { return nil }
        self.key = key
        values = row.exists ? row.values : []
        updatedAt = row.updatedAt
        owner = row.owner
        // A tombstone that was pulled beneath the edit of a row that was there deletes that one.
        isOverTombstone =
            row.exists && row.isTombstone && row.isInserted
            && (row.base == row.version || !row.wasThere && row.base != Self.anyVersion)
        let isNew = row.isInserted && !row.wasThere && !row.isAdopted
        let differs = (0..<count).map { row.values[$0] != row.before[$0] }
        unknown =
            row.exists && row.isTouched
            ? (0..<count).filter { !isKnown[$0] && differs[$0] && (row.isInserted || row.isChanged[$0]) }
                .map { table.columns[$0] } : []
        switch (row.exists, row.base) {
        // A statement that could have replaced the row did not.
        case (true, _) where !row.isTouched: change = nil
        case (true, nil): change = .create(base: 0)
        // The app has not seen the row that was deleted: reviving it overwrites nothing.
        case (true, 0?) where row.isTombstone && row.isInserted:
            change = .create(base: row.version, isConditional: isNew)
        case (true, let base?) where row.isTombstone:
            change = .create(base: base, isConditional: isNew && base == row.version)
        // The server has received the insertion before, in a batch whose outcome is not known; or another device has inserted the same.
        case (true, _?) where row.isInserted && row.isPulled && !known.contains { differs[$0] }: change = nil
        case (true, 0?) where row.isInserted: change = .create(base: 0)
        case (true, let base?) where row.isInserted: change = .rewrite(base: base)
        case (true, let base?):
            // A column may have its old value again, or have kept it since the statement was ignored.
            let columns = known.filter { row.isChanged[$0] && differs[$0] }
            change = columns.isEmpty ? nil : .update(base: base, columns: Set(columns.map { table.columns[$0].number }))
        case (false, let base?):
            // A row may be gone without the app's having deleted it, as by a migration, which each device runs.
            let isNone = row.isTombstone || !row.wasThere
            change = isNone ? nil : .delete(base: base, isConditional: row.wasSent || base == 0)
        case (false, nil): change = nil
        }
    }

    /// The base of an edit of a row that was deleted since the app has seen it in a version that is not known: less than each tombstone's timeStamp.
    static let anyVersion: Int64 = 1

    /// What the statement reads before the columns.
    private static let fixed = 9

    /// The statement that reads an edit `e`, its row `t` and the server's row `r`.
    static func query(_ table: CapturedTable) -> String {
        let columns =
            [
                "t.\(table.quotedKey) IS NOT NULL", "coalesce(e.base, r.time_stamp)", "r.time_stamp", "r.deleted",
                "e.m0",
                "e.was_sent", "strftime('%Y-%m-%dT%H:%M:%fZ', e.at)", "coalesce(r.owner, o.sync_id)",
                "e.was_there",
            ] + table.columns.map { "t.\(quoted($0.name))" } + table.columns.map { "e.\($0.side)" }
            + (0..<table.words).map { "e.m\($0)" } + (0..<table.words).map { "e.v\($0)" }
        return """
            SELECT \(columns.joined(separator: ", ")) FROM \(table.edit) AS e
            LEFT JOIN \(table.quotedName) AS t ON \(join(table))
            LEFT JOIN \(table.state) AS r ON r.id = e.id
            LEFT JOIN weir_owner AS o ON o.tbl = \(table.number) AND o.id = e.id WHERE e.id = ?1
            """
    }

    /// Whether `t` is the row of the edit `e`: the same key, be it only in what its collation ignores.
    static func join(_ table: CapturedTable) -> String {
        "t.\(table.quotedKey) = e.id AND e.id = t.\(table.quotedKey) COLLATE BINARY"
    }
}

extension PendingRow {
    /// The change as JSON of the contract.
    ///
    /// A column that the server does not have, or has in a type that this code does not know, is left out.
    ///
    /// - Throws: `WireValue.Unsendable`.
    func json(_ change: RowChange, of table: CapturedTable, as server: ServerSchema.Table) throws -> [UInt8] {
        guard let id = table.definition.keyKind.id(of: key) else {
            throw WireValue.Unsendable(
                reason: "its key is no id: 1 to 255 bytes of UTF-8 without NUL, an integer, or a uuid in 16 bytes")
        }
        var json = JSONWriter()
        json.beginObject()
        json.member("table", server.name)
        json.name("id")
        json.value(id.span)
        if let owner { json.member("syncId", owner) }
        switch change {
        case .delete(let base, let isConditional):
            json.member("deleted", true)
            json.member("base", base)
            if isConditional { json.member("ifBase", true) }
        case .create(let base, let isConditional):
            try write(nil, of: table, as: server, to: &json)
            json.member("base", base)
            if isConditional { json.member("ifBase", true) }
        case .update(let base, let columns):
            try write(columns, of: table, as: server, to: &json)
            json.member("base", base)
        case .rewrite(let base):
            try write(nil, of: table, as: server, to: &json)
            json.member("base", base)
            json.member("ifBase", true)
        }
        if server.policy == .lastWriteWins { json.member("updatedAt", updatedAt) }
        json.endObject()
        return json.take()
    }

    private func write(
        _ columns: Set<Int>?, of table: CapturedTable, as server: ServerSchema.Table,
        to json: inout JSONWriter
    ) throws {
        json.name("values")
        json.beginObject()
        for (column, value) in zip(table.columns, values) where columns?.contains(column.number) ?? true {
            guard let target = server.column(for: column.name), target.type != .unknown else { continue }
            json.name(target.name)
            do {
                try WireValue.write(value, as: target.type, to: &json)
            } catch let error as WireValue.Unsendable {
                throw WireValue.Unsendable(reason: "\(column.name) holds \(error.reason)")
            }
        }
        json.endObject()
    }
}
