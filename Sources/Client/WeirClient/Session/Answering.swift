import Foundation

/// What a session does with an answer.
extension Weir {
    // MARK: Requests

    /// Sends a request of a session, and keeps the lease until the response has come.
    func send(
        _ method: String, _ path: String, body: [UInt8] = [], to server: Server, as caller: Server.Caller
    ) async throws -> TransportResponse {
        try await keepingLease { try await server.send(method, path, body: body, as: caller) }
    }

    /// Waits for what the network does.
    func keepingLease<Result>(_ body: () async throws -> Result) async throws -> Result {
        let attachment = try attached
        let (lease, options) = (attachment.lease, attachment.options)
        // If it cannot be renewed, the session ends where it takes the lease itself, before it changes anything.
        let renewal = Task {
            while true {
                try await options.clock.sleep(options.clock.now() + Lease.renewal)
                try Task.checkCancellation()
                try lease.take(in: openFile.database, now: options.now())
            }
        }
        defer { renewal.cancel() }
        return try await body()
    }

    // MARK: Schema

    /// The schema that the file has, or else the server's.
    func cachedSchema(_ server: Server, _ caller: Server.Caller) async throws -> CachedSchema {
        let file = try openFile
        if let known = try SessionRecord(database: file.database).schema(known: file.serverSchema) {
            file.serverSchema = known
            return known
        }
        return try await fetchSchema(server, caller, known: nil)
    }

    /// Gets the server's newest schema, and keeps it in the file.
    func fetchSchema(_ server: Server, _ caller: Server.Caller, known: CachedSchema?) async throws -> CachedSchema {
        let response = try await send("GET", "v1/schema", to: server, as: caller)
        let new = try Self.read(response) { try CachedSchema($0) }
        if new != known {
            let account = try attached.account
            let database = try openFile.database
            try database.transaction(writesRows: false) {
                let record = SessionRecord(database: database)
                try record.require(account)
                try Vector(database: database).completeColumns(from: known?.schema, to: new.schema)
                try record.keep(new)
            }
        }
        return new
    }

    // MARK: Rows of conflicts

    /// Adds the rows of conflicts that did not fit into the answer.
    func addRows(
        to answer: inout SyncAnswer, of request: SyncRequest, _ server: Server, _ caller: Server.Caller
    ) async throws {
        guard let batch = request.batch else { return }
        while let first = answer.batch?.rowsFrom {
            let path = "v1/batches/\(batch.number)?knowledgeId=\(Server.encode(request.knowledgeID))&rowsFrom=\(first)"
            let response = try await send("GET", path, to: server, as: caller)
            guard response.status == 200 else {
                throw SyncError(.unavailable, "the outcome of the batch is not known at the moment")
            }
            try Self.read(response) { try answer.addRows($0) }
            // Each page has at least its first row.
            guard answer.batch?.rowsFrom.map({ $0 > first }) ?? true else {
                throw SyncError(.unreadable, "a page of rows does not continue")
            }
        }
    }

    // MARK: Applying

    /// Applies an answer.
    ///
    /// - Parameters:
    ///   - file: the one of which it was asked.
    ///   - resets: how many there were then.
    /// - Returns: whether everything must be pulled again, and how many resets there are after those of the answer.
    func apply(
        _ answer: SyncAnswer, to file: ClientFile, _ schema: CachedSchema, _ attachment: Attachment, resets: Int64
    ) async throws -> (isIncomplete: Bool, resets: Int64) {
        let record = SessionRecord(database: file.database)
        var resets = resets
        try attachment.takeLease(in: file.database)
        try file.requiring(resets: &resets) {
            // Before the rows' versions are forgotten, so that a process which is killed in between pulls first, too.
            if !answer.resync.isEmpty {
                try file.database.transaction { try record.setMustDrain(true, isResync: true) }
            }
            try file.releaseColumns(of: schema.schema)
        }
        let applying = try Applying(
            file, schema.schema, account: answer.syncID, slice: attachment.options.slice,
            orphans: attachment.options.orphans, knowledgeID: attachment.options.knowledgeID)
        var steps = AnswerSteps(answer, applying)
        let clock = attachment.options.clock
        // A first sync is waited for; later, and where the app writes meanwhile, its writes come first.
        let isFirst = try !record.isComplete
        if isFirst { try file.database.setCheckpointDistance(.long) }
        _ = try foreignWrites.areRecent(in: file.database, now: clock.now())
        while true {
            let began = clock.now()
            guard try file.requiring(resets: &resets, { try steps.next() }) else { break }
            if statuses.current.phase == .syncing { statuses.update { $0.phase = .catchingUp } }
            let pauses = try foreignWrites.areRecent(in: file.database, now: clock.now()) || !isFirst
            // The app's writes and its calls of Weir have as long as the transaction took.
            await Task.yield()
            if pauses { try await clock.sleep(clock.now() + (clock.now() - began)) }
            try Task.checkCancellation()
            try require(file)
            try attachment.takeLease(in: file.database)
        }
        let isIncomplete = steps.isIncomplete
        if answer.batch != nil {
            try file.requiring(resets: &resets) {
                try file.database.transaction(writesRows: false) {
                    try KeptEdits(database: file.database).prune(attachment.options.conflictLog)
                }
            }
        }
        try showKept()
        let owners = Set(try record.owners)
        if owners != statuses.current.owners { statuses.update { $0.owners = owners } }
        let isDrained = answer.isLast && !isIncomplete
        if isDrained, try record.mustDrain {
            // Rows that the server's history no longer has are their owners' still. A process that is killed meanwhile begins again.
            try file.requiring(resets: &resets) { try file.settleBackfills(Array(applying.writers.values)) }
            for owner in try applying.ownersOfAbsentRows() {
                var rows = OwnerRows(applying: applying, owner: owner, end: .absence)
                while try file.requiring(resets: &resets, { try rows.next() }) {
                    await Task.yield()
                    try require(file)
                    try attachment.takeLease(in: file.database)
                }
            }
            try file.requiring(resets: &resets) {
                try applying.forgetAbsentRows(isAdopting: !record.adoptsAbsentRows)
            }
            if try record.adoptsAbsentRows {
                var adopted = 0
                try await adopt(nil, &adopted)
            }
            try file.requiring(resets: &resets) {
                try file.database.transaction(writesRows: false) { try record.setMustDrain(false) }
            }
        }
        if isDrained {
            var orphans = try applying.absentOrphans[...]
            while !orphans.isEmpty {
                let next = orphans.prefix(applying.slice)
                try file.requiring(resets: &resets) { try applying.writeAbsent(next) }
                orphans = orphans.dropFirst(applying.slice)
                await Task.yield()
                try require(file)
                try attachment.takeLease(in: file.database)
            }
        }
        return (isIncomplete, resets)
    }
}
