import Metrics
import RecordStore
import SQLite

/// Writes the calls of `commit` that wait in one transaction; each stands or falls for itself.
struct GroupCommit {
    private let connection: Connection
    private let tables: PreparedTables
    private let metrics: SQLiteStoreMetrics

    init(_ connection: Connection, _ tables: PreparedTables, _ metrics: SQLiteStoreMetrics) {
        self.connection = connection
        self.tables = tables
        self.metrics = metrics
    }

    /// Writes and answers all tickets.
    func run(_ tickets: [CommitTicket]) {
        var refusals: [RecordStoreError?] = []
        let watch = Stopwatch()
        do {
            try connection.transaction(.immediate) {
                let writer = StepWriter(connection, tables)
                // Savepoints cost a copy of every page changed, so a call that is alone does without: its refusal rolls
                // back the transaction.
                if tickets.count == 1 {
                    try writer.write(tickets[0].steps)
                    refusals.append(nil)
                } else {
                    for ticket in tickets { refusals.append(try attempt(ticket, writer)) }
                }
            }
        } catch {
            let failure = RecordStoreError(error)
            metrics.noteFailure(tickets)
            for (index, ticket) in tickets.enumerated() {
                let refusal = index < refusals.count ? refusals[index] : nil
                ticket.completion.resume(returning: .failure(refusal ?? failure))
            }
            return
        }
        metrics.note(tickets, failed: refusals.count { $0 != nil }, watch)
        for (ticket, refusal) in zip(tickets, refusals) {
            ticket.completion.resume(returning: refusal.map(Result.failure) ?? .success(()))
        }
    }

    /// Writes one call of several.
    ///
    /// - Returns: why this call alone failed.
    /// - Throws: what fails all of them, such as a full disk.
    private func attempt(_ ticket: CommitTicket, _ writer: StepWriter) throws -> RecordStoreError? {
        try run("SAVEPOINT weir_call")
        do {
            try writer.write(ticket.steps)
            try run("RELEASE weir_call")
            return nil
        } catch let refusal as RecordStoreError {
            try run("ROLLBACK TO weir_call")
            try run("RELEASE weir_call")
            return refusal
        }
    }

    private func run(_ sql: StaticString) throws {
        var statement = try connection.statement(sql)
        try statement.run()
    }
}
