/// By what it is known whether something was written since the file was last looked at.
struct PendingMark: Equatable {
    /// Whether triggers have recorded something that no session has looked at.
    var isLogged = false
    /// The edits, which another process may have made of what was recorded: how many, and the sum of their times.
    private var edits: Int64 = 0
    private var times = 0.0
    /// The batch without outcome: another process may have frozen what was recorded, and have ended before it had the answer.
    private var batch: Int64?

    init(of file: ClientFile) throws {
        for table in file.tables {
            if try file.database.value("SELECT 1 FROM \(table.log) LIMIT 1") != nil {
                isLogged = true
                return
            }
        }
        batch = try file.database.integer("SELECT max(number) FROM weir_batch")
        for table in file.tables {
            try file.database.rows("SELECT count(*), total(at) FROM \(table.edit)") { row in
                edits += row.integer(at: 0)
                if case .real(let sum) = row.value(at: 1) { times += sum }
            }
        }
    }
}
