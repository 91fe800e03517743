import JSONText

/// Values of rows as JSON of the contract and back, and who has written them.
extension RowWriter {
    // MARK: Values

    /// A row whose spelling of its values is kept.
    enum SpelledRow {
        /// As ``selectRow`` reads it.
        case present(Row)
        case removed(RemovedRow)
    }

    /// How a row spells its value of a column; `nil` where it has none.
    private func spelling(ofColumn index: Int, in row: SpelledRow?) -> ValueSpelling? {
        let (column, server) = columns[index]
        switch row {
        case nil: return nil
        case .present(let row): return ValueSpelling(of: row, at: 1 + index, type: server.type)
        case .removed(let row):
            return row.values.first { $0.column.number == column.number }
                .flatMap { ValueSpelling(of: $0.value, type: server.type) }
        }
    }

    /// The values of a row of the server, by the columns; `nil` for NULL where the row lacks the column.
    ///
    /// A row that was last written before its table had a column lacks it, and has the default that the schema names.
    ///
    /// - Parameter row: the row in the table.
    func rowValues(_ json: ArraySlice<UInt8>, like row: SpelledRow?) throws -> [SQLValue?] {
        var values = try values(json, like: row)
        for (index, value) in serverDefaults where values[index] == nil {
            values[index] = try self.value(of: value, inColumn: index, like: spelling(ofColumn: index, in: row))
        }
        return values
    }

    /// Whether a value of a column is the default that the server's schema names.
    func isServerDefault(_ value: SQLValue, of column: CapturedTable.Column) throws -> Bool {
        guard let found = serverDefaults.first(where: { columns[$0.index].column.number == column.number }) else {
            return false
        }
        let spelling = ValueSpelling(of: value, type: columns[found.index].server.type)
        return try self.value(of: found.value, inColumn: found.index, like: spelling) == value
    }

    /// The values that JSON of the contract has, by the columns; `nil` where it has none.
    ///
    /// - Parameter row: the row in the table.
    private func values(_ json: ArraySlice<UInt8>, like row: SpelledRow?) throws -> [SQLValue?] {
        var values: [SQLValue?] = Array(repeating: nil, count: columns.count)
        var reader = JSONReader(json)
        var next = 0
        try reader.members { reader, name in
            // The server sends columns in their order.
            let isNext = next < columns.count && name.elementsEqual(columns[next].server.name.utf8)
            guard let index = isNext ? next : indexes[String(decoding: name, as: UTF8.self)] else {
                if !lacking.isEmpty, lacking.contains(foldedName(String(decoding: name, as: UTF8.self))) {
                    try Vector(database: database).setLacksColumns()
                }
                return try reader.skip()
            }
            next = index + 1
            let canonical = try ValueSpelling.Canonical(&reader, type: columns[index].server.type)
            // Most values of a row that comes again are as they were, whatever the spelling of others is.
            if case .present(let row) = row, let text = canonical.text, references[index] == nil,
                ValueSpelling.isKept(asTextIn: columns[index].server.type), row.has(.text(text), at: 1 + index)
            {
                values[index] = .text(text)
            } else {
                let spelling = canonical.text == nil ? nil : spelling(ofColumn: index, in: row)
                values[index] = try value(of: canonical, inColumn: index, like: spelling)
            }
        }
        return values
    }

    /// Values of columns that the server has, as a JSON object with the server's names.
    ///
    /// A value that the column's type does not have is left out.
    func json(of values: [NamedValue]) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            for (column, value) in values {
                guard let target = server.column(for: column.name), target.type != .unknown else { continue }
                var text = JSONWriter()
                do {
                    try WireValue.write(value, as: target.type, to: &text)
                } catch {
                    // The app wrote it, and it is not what the server has.
                    continue
                }
                json.name(target.name)
                json.raw(text.take())
            }
        }
        return json.take()
    }

    /// The values of a JSON object, by the app's columns, spelled as a row of the table spells them.
    ///
    /// - Parameters:
    ///   - key: the row's, which need not be in the table.
    ///   - isWhole: whether it is a row, in which a column that is absent has its default, or is NULL.
    func values(of json: [UInt8], like key: SQLValue, isWhole: Bool = false) throws -> [NamedValue] {
        func read(_ row: SpelledRow?) throws -> [SQLValue?] {
            isWhole ? whole(try rowValues(json[...], like: row)) : try values(json[...], like: row)
        }
        var found: [SQLValue?]?
        try selectRow.rows([key]) { found = try read(.present($0)) }
        return permitted(named(try found ?? read(nil)))
    }

    /// The row as it is in the table; `nil` if it is not there.
    func row(_ key: SQLValue) throws -> [NamedValue]? {
        let names = (["1"] + table.columns.map { quoted($0.name) }).joined(separator: ", ")
        return try database.map("SELECT \(names) FROM \(table.quotedName) WHERE \(Self.isKey(table))", [key]) { row in
            table.columns.enumerated().map { (column: $1, value: row.value(at: 1 + $0)) }
        }.first
    }

    // MARK: Writers

    /// Numbers that were looked up.
    struct Writers {
        /// By the JSON of rows that names them.
        fileprivate var byJSON: [ArraySlice<UInt8>: SQLValue] = [:]
        /// Rows that follow each other are often of one writer.
        fileprivate var last: (json: ArraySlice<UInt8>, number: SQLValue)?
        fileprivate var lastDevice: (device: String, account: String, number: SQLValue)?
    }

    /// The number of who has written a row; NULL if that is not said.
    func writer(of row: ServerRow) throws -> SQLValue {
        if let last = writers.last, last.json == row.writer { return last.number }
        let number: SQLValue
        if let known = writers.byJSON[row.writer] {
            number = known
        } else if let writer = try row.readWriter() {
            number = try self.writer(writer.knowledgeID, of: writer.syncID)
            writers.byJSON[row.writer] = number
        } else {
            number = .null
        }
        writers.last = (row.writer, number)
        return number
    }

    /// The number of a device of an account.
    func writer(_ device: String, of account: String) throws -> SQLValue {
        if let last = writers.lastDevice, last.device == device, last.account == account { return last.number }
        let names: [SQLValue] = [.text(account), .text(device)]
        try database.run("INSERT OR IGNORE INTO weir_writer (sync_id, knowledge_id) VALUES (?1, ?2)", names)
        let number = try database.value(
            "SELECT number FROM weir_writer WHERE sync_id = ?1 AND knowledge_id = ?2", names)
        writers.lastDevice = (device, account, number ?? .null)
        return number ?? .null
    }
}
