import Foundation

/// What attaching a file to an account has found.
public enum AttachOutcome: Equatable, Sendable {
    /// The file was attached to this account before; it is continued, and no request was made.
    case resumed
    /// Neither the file nor the account has rows.
    case startedEmpty
    /// The account has no rows. Those of the file are pending, and become the account's.
    case seededFromLocal
    /// The account has rows, which the first sync brings. Rows of the file are pending, and are added to them.
    case usedRemote
}

/// The account and the server that a file is synced with.
struct Attachment {
    /// As the file had it, which another process may attach to another account.
    let account: SessionRecord.Account
    let server: Server
    let options: SyncOptions
    let lease: Lease
    var sizes = BatchSizes()

    /// Takes the lease, or renews it, without which no process detaches the file.
    ///
    /// - Throws: `LeaseHeld`; `SyncError` if the file is not the account's any more.
    func takeLease(in database: Database) throws {
        try lease.take(in: database, now: options.now())
        try SessionRecord(database: database).require(account)
    }
}

extension Weir {
    /// Attaches the file to an account of a server, which is needed once in a process before syncing.
    ///
    /// The first time, the server is asked whether the account has rows; nothing is sent to it, and nothing is changed in the app's
    /// tables. Rows that were in the file before are adopted as with ``seed(_:)``. Later, no request is made.
    ///
    /// A file belongs to one account until ``detach(_:discardingUnsent:)``, since its pending changes are the account's.
    ///
    /// - Parameters:
    ///   - account: the app's name of the account: always the same for the same account.
    ///   - server: the server's URL, of which the paths of the contract are relative.
    ///   - options: how to sync.
    ///   - token: returns a valid token of the account. It is called when there is none, and when the server has rejected the last one.
    /// - Throws: `WeirError.otherAccount` if the file is attached to another account; `SyncError` if the server cannot be asked the
    ///   first time, after which the call can be repeated; `WeirError`.
    @discardableResult
    public func attach(
        _ account: String, server: URL, options: SyncOptions = SyncOptions(),
        token: @escaping @Sendable () async throws -> String
    ) async throws -> AttachOutcome {
        try await attach(account, server, .token(token), options)
    }

    /// Attaches the file to an account of a server without authentication, which such a server offers on loopback alone.
    ///
    /// - Parameters:
    ///   - account: the account's syncId.
    ///   - server: the server's URL.
    ///   - links: other owners' syncIds, and what the account may do with their rows.
    ///   - options: how to sync.
    /// - Throws: as with tokens.
    @discardableResult
    public func attach(
        _ account: String, server: URL, links: [String: Access] = [:], options: SyncOptions = SyncOptions()
    ) async throws -> AttachOutcome {
        try await attach(account, server, .unauthenticated(syncID: account, links: links), options)
    }

    private func attach(
        _ account: String, _ url: URL, _ credentials: Credentials, _ options: SyncOptions
    ) async throws -> AttachOutcome {
        let server = Server(url: url, credentials: credentials, transport: options.transport)
        var outcome = AttachOutcome.resumed
        if try SessionRecord(database: openFile.database).account == nil {
            let answer = try await probe(server, options)
            let hasRemote = !answer.changes.isEmpty || answer.hasMore
            try await seed()
            outcome = hasRemote ? .usedRemote : try openFile.hasRows() ? .seededFromLocal : .startedEmpty
            try SessionRecord(database: openFile.database).attach(account, syncID: answer.syncID)
        }
        let found = try SessionRecord(database: openFile.database).account
        guard let attached = found, attached.name == account else {
            throw WeirError.otherAccount(attached: found?.name ?? "")
        }
        // A session under way continues with what it began with.
        await endSession()
        if let marker = options.installMarker {
            try InstallMarker(url: marker).check(openFile, name: options.knowledgeID)
        }
        attachment = Attachment(
            account: attached, server: server, options: options, lease: Lease(holder: UUID().uuidString))
        let record = try SessionRecord(database: openFile.database)
        let isComplete = try record.isComplete
        let pending = try openFile.pendingRows()
        let owners = Set(try record.owners)
        statuses.update { status in
            status.owners = owners
            status.firstSync = isComplete ? 1 : nil
            status.pendingRows = pending
        }
        try showKept()
        return outcome
    }

    /// Asks the server for one row of the account.
    private func probe(_ server: Server, _ options: SyncOptions) async throws -> SyncAnswer {
        let device = try SessionRecord(database: openFile.database).knowledgeID(options.knowledgeID)
        var renewed = false
        while true {
            do {
                let request = SyncRequest(knowledgeID: device, epoch: nil, limit: 1)
                let response = try await server.send("POST", "v1/pull", body: request.json(), as: server.caller())
                return try Self.answer(in: response)
            } catch let error as SyncError where error.kind == .unauthenticated && !renewed {
                renewed = true
            }
        }
    }

    /// Reads a response's body; one that cannot be read is not the server's.
    static func read<Answer>(_ response: TransportResponse, _ body: ([UInt8]) throws -> Answer) throws -> Answer {
        do {
            return try body(response.body)
        } catch let error as WeirError {
            throw error
        } catch {
            throw SyncError(.unreadable, "the response cannot be read: \(error)")
        }
    }
}
