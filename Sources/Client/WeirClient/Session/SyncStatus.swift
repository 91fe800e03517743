import Foundation

/// What syncing is at, for the app to show.
public struct SyncStatus: Equatable, Sendable {
    /// What Weir does at the moment.
    public enum Phase: Equatable, Sendable {
        /// Nothing: it was not started, or stopped.
        case stopped
        /// It waits for a reason to sync.
        case idle
        /// It waits after a failure, or for another process that syncs the file.
        case waiting
        /// It exchanges changes with the server.
        case syncing
        /// It receives more than one page, or writes what it has received in more than one transaction, so that the tables are those of
        /// different times until the end.
        case catchingUp
        /// The app has called ``Weir/suspend()``.
        case suspended
    }

    /// What somebody has to do something about; everything else is synced.
    public enum Attention: Hashable, Sendable {
        /// The user has to log in again.
        case logIn
        /// The server does not let this account or device sync; its code says why.
        case forbidden(code: String?)
        /// The token is of another account than the file, which another process may have detached: attach it again.
        case otherAccount
        /// The server does not accept the requests of this app: update it.
        case rejected(code: String?)
        /// Some rows cannot be sent as they are.
        case unsendableRows(Int)
        /// The server has no such tables, whose changes stay pending.
        case unknownTables(Set<String>)
        /// The server has no such columns, by tables: their values are sent once it has them.
        case unknownColumns([String: Set<String>])
        /// The server has not stored some changes, which are kept: ``Weir/keptEdits()``.
        case keptEdits(Int)
        /// Some rows of the server cannot be written into the app's tables: ``Weir/parkedRows()``, without those of tables that the app does
        /// not have.
        case parkedRows(Int)
    }

    /// What Weir does at the moment.
    public internal(set) var phase: Phase = .stopped
    /// How many rows have changes that the server has not acknowledged, as last counted.
    public internal(set) var pendingRows = 0
    /// How much of the first sync has come, from 0 to 1; `nil` before it has begun.
    public internal(set) var firstSync: Double?
    /// When everything was last equal to the server.
    public internal(set) var lastSuccess: Date?
    /// Why the last session failed; `nil` after a success.
    public internal(set) var lastError: SyncError?
    /// What somebody has to do something about.
    public internal(set) var needsAttention: Set<Attention> = []
    /// The owners whose rows the file has, as the server has last named them: the account itself and those that it is linked to.
    ///
    /// One that is revoked is no longer among them; its rows are gone from the tables then, and edits that were not sent are in
    /// ``Weir/keptEdits()``.
    public internal(set) var owners: Set<Owner> = []

    /// Whether the first sync has come to its end: what is missing in the tables until then may exist.
    public var isComplete: Bool { firstSync == 1 }

    /// Records how a session has failed.
    mutating func fail(_ error: SyncError) {
        lastError = error
        let found: Attention? =
            switch error.kind {
            case .unauthenticated: .logIn
            case .forbidden: .forbidden(code: error.code)
            case .otherAccount: .otherAccount
            case .rejected: .rejected(code: error.code)
            case .unreachable, .unavailable, .unreadable, .noToken, .file: nil
            }
        // A failure of the network does not end a reason that the last session had.
        if let found { needsAttention = needsAttention.filter(\.isOfRows).union([found]) }
    }

    /// Records that a session has reached its end.
    mutating func succeed(at time: Date) {
        lastError = nil
        lastSuccess = time
        needsAttention = needsAttention.filter(\.isOfRows)
    }
}

extension SyncStatus.Attention {
    /// Whether it concerns rows, and not the account.
    var isOfRows: Bool {
        switch self {
        case .unsendableRows, .unknownTables, .unknownColumns, .keptEdits, .parkedRows: true
        case .logIn, .forbidden, .otherAccount, .rejected: false
        }
    }

    /// Whether it concerns rows that cannot be sent.
    var isHeld: Bool {
        switch self {
        case .unsendableRows, .unknownTables, .unknownColumns: true
        default: false
        }
    }

    /// Whether it concerns what the server has refused, or the app's tables cannot have.
    var isKept: Bool {
        switch self {
        case .keptEdits, .parkedRows: true
        default: false
        }
    }
}

extension Weir {
    /// The current status, and each later one.
    ///
    /// An app that is slow to read sees the newest alone. It ends with ``close()``.
    public nonisolated var status: AsyncStream<SyncStatus> { statuses.stream() }

    /// The status at the moment.
    public nonisolated var currentStatus: SyncStatus { statuses.current }

    /// Returns once the first sync of the account into this file has come to its end, in this run of the app or before.
    ///
    /// - Throws: `SyncError` if syncing fails and somebody has to do something about it; `WeirError.closed`; `CancellationError`.
    public nonisolated func firstSync() async throws {
        for await status in status {
            if status.isComplete { return }
            if let error = status.lastError, !error.passes { throw error }
        }
        try Task.checkCancellation()
        throw WeirError.closed
    }
}
