import FanOutLink
import Gateway
import JSON
import SyncModel

/// The columns that say `onDelete: reassign` for rows of a table.
struct CrudReferences: Sendable {
    /// A table with such columns.
    private struct Child: Sendable {
        let table: Int
        let columns: [Int]
    }

    /// A row that references another one.
    struct Row: Sendable {
        let table: Int
        let id: RowID
        let timeStamp: TimeStamp
        /// Those that name the other row.
        let columns: [Int]
        /// The JSON of its values.
        let bytes: Int
    }

    /// How many rows reference one row by a column.
    struct Count: Sendable {
        let table: Int
        let column: Int
        var rows = 0
    }

    /// What a search has found.
    struct Found: Sendable {
        /// No more than were asked for.
        var rows: [Row] = []
        /// Of all, those above the limit included.
        var total = 0
        /// By table and column, without those that no row has.
        var counts: [Count] = []
        /// The search has seen all rows up to here.
        var head = TimeStamp.maximum
    }

    private let parent: FaceTable
    private let rows: CrudRows
    private let children: [Child]

    init(of parent: FaceTable, _ rows: CrudRows) {
        self.parent = parent
        self.rows = rows
        children = rows.session.schema.schema.tables.enumerated().compactMap { index, table in
            let columns = table.columns.indices.filter { column in
                let column = table.columns[column]
                return column.onDelete == .reassign && column.references == parent.table.name
            }
            return columns.isEmpty ? nil : Child(table: index, columns: columns)
        }
    }

    var isEmpty: Bool { children.isEmpty }

    /// The names of the columns.
    var names: Set<String> {
        Set(children.flatMap { child in child.columns.map { name(child.table, $0) } })
    }

    func name(_ table: Int, _ column: Int) -> String { self.table(table).columns[column].name }

    func table(_ index: Int) -> Table { rows.session.schema.schema.tables[index] }

    /// The id of a row as a value of a column; `nil` where the column can have no such value.
    func value(_ id: RowID, _ table: Int, _ column: Int) -> FaceValue? {
        FaceValue(id, for: self.table(table).columns[column], limits: rows.session.limits)
    }

    /// Finds the rows that reference a row and are not deleted, without the row itself.
    ///
    /// - Parameters:
    ///   - names: of the columns that are looked at; `nil`: all.
    ///   - since: those that were written above it alone; `nil`: all.
    ///   - limit: how many rows are returned; all are counted.
    func find(
        _ id: RowID, by names: Set<String>? = nil, since: TimeStamp?, limit: Int, leastHead: TimeStamp
    ) async throws -> Found {
        var found = Found()
        for child in children {
            let columns = child.columns.filter { names?.contains(name(child.table, $0)) ?? true }
            if columns.isEmpty { continue }
            let values = columns.map { value(id, child.table, $0)?.canonical }
            var counts = columns.map { Count(table: child.table, column: $0) }
            var rest: StreamSelection? =
                since.map { .changes(above: $0, upTo: .maximum, table: child.table) }
                ?? .table(child.table, after: nil)
            var head: TimeStamp?
            while let selection = rest {
                let page = try await rows.rows(selection, leastHead: leastHead, continuing: head)
                if head == nil { found.head = min(found.head, page.head) }
                head = page.head
                for row in page.rows where !row.isDeleted {
                    let rowID = try row.id
                    if child.table == parent.index, rowID == id { continue }
                    let stored = row.values(in: table(child.table))
                    let positions = columns.indices.filter { position in
                        values[position].map(stored[columns[position]].elementsEqual) ?? false
                    }
                    if positions.isEmpty { continue }
                    for position in positions { counts[position].rows += 1 }
                    found.total += 1
                    if found.rows.count < limit {
                        found.rows.append(
                            Row(
                                table: child.table, id: rowID, timeStamp: row.timeStamp,
                                columns: positions.map { columns[$0] },
                                bytes: stored.reduce(0) { $0 + $1.count }))
                    }
                }
                rest = page.rest
                // Rows that are written meanwhile are for the next search.
                if case .changes(let above, _, _) = rest, above >= page.head { rest = nil }
            }
            found.counts += counts.filter { $0.rows > 0 }
        }
        return found
    }

    /// Whether a row of the parent's table is, by its references to that table, below another one.
    func isBelow(_ row: FaceRow, _ id: RowID, leastHead: TimeStamp) async throws -> Bool {
        guard let own = children.first(where: { $0.table == parent.index }) else { return false }
        let names = own.columns.map { value(id, own.table, $0)?.canonical }
        var seen: Set<RowID> = [try row.id]
        var next = [row]
        // Each row once, and no more than a table of categories has levels.
        while let row = next.popLast(), seen.count <= Self.maximumLevels {
            for (column, name) in zip(own.columns, names) {
                if let name, row.value(column, in: parent.table).elementsEqual(name) { return true }
                guard let reference = try row.reference(column, in: parent.table), seen.insert(reference).inserted
                else { continue }
                // A reference has an id in its column's canonical form, which has the letters of a UUID in lower case.
                var ids = [reference]
                if let capitals = RowID(reference.text.uppercased()), parent.table.columns[column].type == .uuid {
                    ids.append(capitals)
                }
                let above = try await rows.rows(.ids(table: parent.index, ids), leastHead: leastHead).rows
                next += above.filter { !$0.isDeleted }
            }
        }
        return false
    }

    private static let maximumLevels = 1000
}

extension FaceRow {
    /// The id that a column has; `nil` for null.
    fileprivate func reference(_ column: Int, in table: Table) throws -> RowID? {
        var parser = JSONParser()
        let json = Array(value(column, in: table))
        return try parser.withDocument(json.span) { document in
            guard let text = document.root.string else { return nil }
            return RowID(text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
        }
    }
}
