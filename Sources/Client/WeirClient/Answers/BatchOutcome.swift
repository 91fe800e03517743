/// What became of a batch.
package struct BatchOutcome: Sendable {
    /// The batch's number.
    package private(set) var batch: Int64 = 0
    /// The code of the whole batch's refusal, after which nothing was applied.
    package private(set) var refusal: String?
    /// One for each change, in the order of the request.
    package private(set) var results: [ChangeResult] = []
    /// The index of the first result whose row was left out.
    package private(set) var rowsFrom: Int?
    /// The rows of results that were left out before.
    private var rows: [(result: Int, row: ServerRow?)] = []

    init(_ reader: inout JSONReader) throws {
        var number: Int64?
        try reader.object { reader, name in
            switch name {
            case "batch": number = try reader.integer()
            case "results": try reader.array { results.append(try ChangeResult(&$0)) }
            case "rowsFrom": rowsFrom = Int(try reader.integer())
            case "rows": try reader.array { rows.append(try Self.row(&$0)) }
            case "refused":
                try reader.object { reader, name in
                    if name == "code" { refusal = try reader.string() } else { try reader.skip() }
                }
            default: try reader.skip()
            }
        }
        guard let number else { throw reader.malformed("the number of a batch") }
        batch = number
    }

    private static func row(_ reader: inout JSONReader) throws -> (result: Int, row: ServerRow?) {
        var (result, row): (Int?, ServerRow?)
        try reader.object { reader, name in
            switch name {
            case "result": result = Int(try reader.integer())
            case "row": row = try reader.null() ? nil : try ServerRow(&reader)
            default: try reader.skip()
            }
        }
        guard let result else { throw reader.malformed("the index of a result") }
        return (result, row)
    }

    /// Adds a page of rows that were left out.
    ///
    /// - Returns: whether it is one of this batch.
    mutating func add(_ page: BatchOutcome) -> Bool {
        guard page.batch == batch, page.rows.allSatisfy({ results.indices.contains($0.result) }) else { return false }
        for (index, row) in page.rows { results[index].row = row }
        rowsFrom = page.rowsFrom
        return true
    }

    /// The server's row that a result shows, if there is one.
    func row(of index: Int) -> ServerRow? {
        let result = results[index]
        if let other = result.sameRowAs, results.indices.contains(other) { return results[other].row }
        return result.row
    }
}

/// What became of one change.
package struct ChangeResult: Sendable {
    package enum Status: String, Sendable {
        /// Stored.
        case applied
        /// Stored, and the row is and stays deleted.
        case deleted
        /// Not stored: the server's row is another version.
        case conflict
        /// Not stored.
        case refused
    }

    package private(set) var status = Status.refused
    /// The row's after the change, with `applied` and `deleted`.
    package private(set) var timeStamp: Int64 = 0
    package private(set) var code: String?
    package private(set) var message: String?
    /// The server's row, with `conflict` and `refused`.
    package fileprivate(set) var row: ServerRow?
    package private(set) var sameRowAs: Int?

    init(_ reader: inout JSONReader) throws {
        var status: Status?
        try reader.object { reader, name in
            switch name {
            case "status": status = Status(rawValue: try reader.string())
            case "timeStamp": timeStamp = try reader.timeStamp()
            case "code": code = try reader.string()
            case "message": message = try reader.string()
            case "row": row = try reader.null() ? nil : try ServerRow(&reader)
            case "sameRowAs": sameRowAs = Int(try reader.integer())
            default: try reader.skip()
            }
        }
        guard let status else { throw reader.malformed("the status of a result") }
        self.status = status
    }
}

extension BatchOutcome {
    /// Whether a change was not stored since another one of its atomic batch was not.
    func isAborted(_ position: Int) -> Bool { results[position].code == "batch_aborted" }

    /// Whether a change was not judged since the rows of its batch are too large together.
    func isTooLarge(_ position: Int) -> Bool { results[position].code == "batch_rows_too_large" }

    /// Whether a change was not stored for its own sake.
    func hasFailed(_ position: Int) -> Bool {
        [.conflict, .refused].contains(results[position].status) && !isAborted(position) && !isTooLarge(position)
    }
}
