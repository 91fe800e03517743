import Foundation

/// What is kept in the file of the account and the server, in `weir_meta`.
package struct SessionRecord {
    let database: Database

    package init(database: Database) { self.database = database }

    private func text(_ key: String) throws -> String? {
        try database.metaText(key).map { String(decoding: $0, as: UTF8.self) }
    }

    // MARK: Account

    /// An account that a file is attached to.
    package struct Account: Equatable, Sendable {
        /// The app's name of it.
        package let name: String
        /// The server's.
        package let syncID: String

        package init(name: String, syncID: String) { (self.name, self.syncID) = (name, syncID) }
    }

    /// `nil` for a file that is not attached.
    package var account: Account? {
        get throws {
            guard let name = try text("account"), let syncID = try text("sync_id") else { return nil }
            return Account(name: name, syncID: syncID)
        }
    }

    /// - Throws: `SyncError` unless the file is attached to this account still: another process may have detached it.
    func require(_ expected: Account?) throws {
        guard try account == expected else {
            throw SyncError(.otherAccount, "another process has detached the file: attach it again")
        }
    }

    /// Attaches the file to an account, unless it was attached meanwhile.
    package func attach(_ name: String, syncID: String) throws {
        try database.transaction {
            if try account == nil {
                try database.setMeta("account", .text(name))
                try database.setMeta("sync_id", .text(syncID))
                // The app may have named the account before it was known here.
                try database.run("UPDATE weir_owner SET sync_id = NULL WHERE sync_id = ?1", [.text(syncID)])
            }
        }
    }

    /// The device, if it has a name yet.
    var device: String? { get throws { try text("knowledge_id") } }

    /// The device: a name that is made once for the file, or given by the app.
    package func knowledgeID(_ given: String? = nil) throws -> String {
        if let known = try device { return known }
        return try database.transaction {
            if let known = try device { return known }
            let new = given ?? UUID().uuidString.lowercased()
            try database.setMeta("knowledge_id", .text(new))
            return new
        }
    }

    /// Makes the file another device: the server knows the old one with other batches, as where the file is a copy or comes from a backup.
    ///
    /// - Parameter given: by the app, unless the file has had the name before: another copy may have it still.
    func renew(_ given: String?) throws {
        if let device = try device { try database.setMeta(Self.former + device, .integer(1)) }
        let new = try given.flatMap { try database.meta(Self.former + $0) == nil ? $0 : nil }
        try database.setMeta("knowledge_id", .text(new ?? UUID().uuidString.lowercased()))
    }

    /// Whether a knowledgeId is the file's, or was.
    func isOwnName(_ knowledgeID: String) throws -> Bool {
        try device == knowledgeID || database.meta(Self.former + knowledgeID) != nil
    }

    /// Before the names that the file had.
    private static let former = "former_id "

    // MARK: Server

    /// The server's schema as it was sent last.
    ///
    /// - Parameter known: as it was read before, which is returned if it is the same: large ones take long to read.
    func schema(known: CachedSchema? = nil) throws -> CachedSchema? {
        guard case .blob(let body) = try database.meta("schema") else { return nil }
        return try known?.body == body ? known : CachedSchema(body)
    }

    func keep(_ schema: CachedSchema) throws { try database.setMeta("schema", .blob(schema.body)) }

    /// The owners whose rows the account may read, as the server has last named them, itself included.
    var owners: [Owner] {
        get throws {
            try database.map("SELECT sync_id, access FROM weir_grant ORDER BY sync_id") {
                Owner(syncID: $0.string(at: 0), access: Access(rawValue: $0.string(at: 1)) ?? .read)
            }
        }
    }

    /// The linked owners whose rows the account may write.
    var writableOwners: Set<String> {
        get throws {
            let account = try account?.syncID
            return Set(try owners.filter { $0.access == .write && $0.syncID != account }.map(\.syncID))
        }
    }

    /// Keeps the owners that an answer names, as part of the open transaction.
    func keep(_ owners: [Owner]) throws {
        if try Set(self.owners) == Set(owners) { return }
        try database.run("DELETE FROM weir_grant")
        for owner in owners {
            try database.run(
                "INSERT OR REPLACE INTO weir_grant (sync_id, access) VALUES (?1, ?2)",
                [.text(owner.syncID), .text(owner.access.rawValue)])
        }
    }

    // MARK: Progress

    /// Whether everything must be pulled before another batch is frozen, since it is not known what became of the last one.
    var mustDrain: Bool { get throws { try database.meta("must_drain") == .integer(1) } }

    /// - Parameter isResync: whether rows that the server does not have then were sent before, in another history.
    func setMustDrain(_ isTrue: Bool, isResync: Bool = false) throws {
        let isNew = try mustDrain != isTrue
        if isNew || isResync { try database.setMeta("adopts_absent", .integer(isResync ? 1 : 0)) }
        if isNew { try database.setMeta("must_drain", .integer(isTrue ? 1 : 0)) }
        // An answer from before does not show that everything was pulled since.
        if isTrue { try Resets(database: database).record() }
    }

    /// Whether rows that the server does not have are adopted once everything is pulled.
    ///
    /// Not if it is pulled for another reason than another history: such rows may be those that a migration has inserted on each device.
    var adoptsAbsentRows: Bool { get throws { try database.meta("adopts_absent") != .integer(0) } }

    /// Whether a session has come to its end since the file was attached.
    var isComplete: Bool { get throws { try database.meta("first_sync") == .integer(1) } }

    func setComplete() throws {
        if try isComplete { return }
        try database.transaction(writesRows: false) { try database.setMeta("first_sync", .integer(1)) }
    }
}

/// The answer of `GET /v1/schema`.
struct CachedSchema: Equatable, Sendable {
    let body: [UInt8]
    let schema: ServerSchema
    let limits: Limits

    struct Limits: Equatable, Sendable, Decodable {
        let maxBatchBytes: Int
        let maxChanges: Int
        let maxLimit: Int
        let keepAlive: Int
    }

    private struct Envelope: Decodable { let limits: Limits }

    init(_ body: [UInt8]) throws {
        self.body = body
        schema = try ServerSchema(answer: body)
        limits = try JSONDecoder().decode(Envelope.self, from: Data(body)).limits
    }
}
