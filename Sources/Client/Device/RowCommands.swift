import Commands
import Foundation
import LocalTables
import WeirClient

/// `put`, `edit`, `delete`, `list` and `discard`: what an app does with its tables, without a network.
enum RowCommands {
    private static let table = CommandArgument.one("TABLE", "The table.")
    private static let id = CommandArgument.one("ID", "The row's id.")
    private static let values = CommandArgument.many(
        "COLUMN=VALUE", "A column and its value; the column alone for NULL. Bytes are base64.")

    static let commands = [
        Command(
            "put", "Write a row: create it, or change the columns given.", DeviceProgram.Action(put),
            arguments: [table, .one("ID", "The row's id; - for a new uuid, which is printed."), values],
            options: DeviceOptions.all),
        Command(
            "edit", "Change columns of a row that exists.", DeviceProgram.Action(edit),
            arguments: [table, id, values], options: DeviceOptions.all),
        Command(
            "delete", "Delete a row.", DeviceProgram.Action(delete), arguments: [table, id],
            options: DeviceOptions.all),
        Command(
            "list", "Print rows; * marks those with changes that the server has not acknowledged.",
            DeviceProgram.Action(list), arguments: [.optional("TABLE", "The table; all by default.")],
            options: DeviceOptions.all),
        Command(
            "discard", "Take back the changes of a row that are pending.", DeviceProgram.Action(discard),
            arguments: [table, id], options: DeviceOptions.all),
    ]

    private static func put(_ invocation: Invocation) async throws -> ExitCode {
        try await DeviceFile.with(invocation) { file, options in
            let table = try await file.table(invocation.arguments[0])
            let id = invocation.arguments[1] == "-" ? UUID().uuidString.lowercased() : invocation.arguments[1]
            let values = try assignments(invocation, table)
            _ = try await file.write(update(table, values, id)) { try insertion(table, values, id) }
            return try await report(file, options, table, id)
        }
    }

    private static func edit(_ invocation: Invocation) async throws -> ExitCode {
        try await DeviceFile.with(invocation) { file, options in
            let table = try await file.table(invocation.arguments[0])
            let id = invocation.arguments[1]
            if try await file.write(update(table, try assignments(invocation, table), id)) == 0 {
                throw DeviceFailure("\(table.name) has no row \(id)")
            }
            return try await report(file, options, table, id)
        }
    }

    private static func delete(_ invocation: Invocation) async throws -> ExitCode {
        try await DeviceFile.with(invocation) { file, options in
            let table = try await file.table(invocation.arguments[0])
            let id = invocation.arguments[1]
            let deletion = DeviceFile.Change(
                sql: "DELETE FROM \(quoted(table.name)) WHERE id = ?1", values: [.text(id)])
            if try await file.write(deletion) == 0 {
                throw DeviceFailure("\(table.name) has no row \(id)")
            }
            return try await report(file, options, table, id)
        }
    }

    private static func discard(_ invocation: Invocation) async throws -> ExitCode {
        try await DeviceFile.with(invocation) { file, options in
            let table = try await file.table(invocation.arguments[0])
            let id = invocation.arguments[1]
            guard try await file.weir.discard(table.name, .text(id)) else {
                throw DeviceFailure("\(table.name) \(id) has no changes that can be taken back")
            }
            return try await report(file, options, table, id)
        }
    }

    private static func list(_ invocation: Invocation) async throws -> ExitCode {
        try await DeviceFile.with(invocation) { file, options in
            let named = try await invocation.arguments.first.mapAsync { [try await file.table($0)] }
            let pending = Set(try await file.pending().map { "\($0.table) \($0.key)" })
            var all: [String: Any] = [:]
            for (number, table) in (named ?? file.tables.tables).enumerated() {
                let rows = try await file.rows("SELECT * FROM \(quoted(table.name)) ORDER BY id")
                if options.isJSON {
                    all[table.name] = rows.map { table.json($0) }
                    continue
                }
                if named == nil {
                    Output.write((number > 0 ? "\n" : "") + "\(table.name)" + (rows.isEmpty ? ": no rows" : ""))
                }
                guard let first = rows.first else { continue }
                Printed.table(
                    [" "] + first.columns,
                    rows.map { row in
                        let id = row["id"]?.string ?? ""
                        return [pending.contains("\(table.name) \(id)") ? "*" : " "]
                            + zip(row.columns, row.values).map { ColumnText.text($1, table.type(of: $0)) }
                    })
            }
            if options.isJSON { try Printed.json(named.flatMap { all[$0[0].name] } ?? all) }
            return .success
        }
    }

    // MARK: Statements

    private static func assignments(
        _ invocation: Invocation, _ table: LocalTables.Table
    ) throws(UsageError) -> [(String, SQLValue)] {
        var values: [(String, SQLValue)] = []
        for text in invocation.arguments.dropFirst(2) {
            let value = try ColumnText.assignment(text, of: table)
            if values.contains(where: { $0.0 == value.0 }) { throw UsageError("\(value.0) is given twice") }
            values.append(value)
        }
        return values
    }

    private static func update(
        _ table: LocalTables.Table, _ values: [(String, SQLValue)], _ id: String
    ) -> DeviceFile.Change {
        let columns = values.enumerated().map { "\(quoted($1.0)) = ?\($0 + 1)" }.joined(separator: ", ")
        return DeviceFile.Change(
            sql: "UPDATE \(quoted(table.name)) SET \(columns) WHERE id = ?\(values.count + 1)",
            values: values.map(\.1) + [.text(id)])
    }

    private static func insertion(
        _ table: LocalTables.Table, _ values: [(String, SQLValue)], _ id: String
    ) throws(UsageError) -> DeviceFile.Change {
        let names = ["id"] + values.map(\.0)
        let missing = table.columns.filter { $0.isRequired && !names.contains($0.name) }.map(\.name)
        if !missing.isEmpty {
            throw UsageError("a new row of \(table.name) needs \(missing.joined(separator: ", "))")
        }
        let parameters = names.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        return DeviceFile.Change(
            sql:
                "INSERT INTO \(quoted(table.name)) (\(names.map(quoted).joined(separator: ", "))) VALUES (\(parameters))",
            values: [.text(id)] + values.map(\.1))
    }

    /// Prints the row as it is now, and how much is pending.
    private static func report(
        _ file: DeviceFile, _ options: DeviceOptions, _ table: LocalTables.Table, _ id: String
    ) async throws -> ExitCode {
        let row = try await file.rows("SELECT * FROM \(quoted(table.name)) WHERE id = ?1", [.text(id)]).first
        let pending = try await file.pending()
        if options.isJSON {
            try Printed.json(
                [
                    "table": table.name, "id": id, "row": row.map { table.json($0) } ?? NSNull(),
                    "pending": pending.contains { $0.table == table.name && $0.key == id },
                ] as [String: Any])
        } else {
            let text = row.map { row in
                zip(row.columns, row.values).dropFirst().map { "\($0)=\(ColumnText.text($1, table.type(of: $0)))" }
                    .joined(separator: " ")
            }
            Printed.line("\(table.name) \(id): \(text ?? "no such row")")
            Output.write(
                pending.isEmpty
                    ? "Nothing is pending." : "\(Printed.rows(pending.count)) pending; weir-device sync sends them.")
        }
        return .success
    }
}

extension Optional where Wrapped: Sendable {
    fileprivate func mapAsync<Value>(_ body: (Wrapped) async throws -> Value) async rethrows -> Value? {
        guard let value = self else { return nil }
        return try await body(value)
    }
}
