import Gateway
import SyncModel

/// What the server keeps of a device of the protocol, each a timeStamp that only rises.
///
/// A device asks for what is above the greatest `updatedOn` that it has seen, and one that asks for devices and hears of none does
/// not ask for rows. Both would skip rows: those that were written to an earlier table while it downloaded a later one, and those of
/// an answer that was lost. So
///
/// - the request for devices freezes the head, and until the next one no table has rows above it;
/// - the server knows for each table up to where the device has shown to have the others' rows, and does not say that no device
///   uploaded while there are rows above.
///
/// A time that a client names is not always one of the server's: the greatest `updatedOn` of a table may be that of an edit which is
/// not uploaded, by the device's clock.
struct TrackerPositions: Sendable {
    private let values: [String: Int64]
    private let session: any FaceSession

    /// Reads them, also what other gateways wrote.
    init(_ session: any FaceSession) async throws {
        self.session = session
        values = try await session.positions(isFresh: true)
    }

    // Those of another history mean nothing. No table's name has a slash.
    private static func name(_ name: String, _ session: any FaceSession) -> String { "\(session.epoch) \(name)" }

    private subscript(_ name: String) -> TimeStamp? { values[Self.name(name, session)].map { TimeStamp($0) } }

    /// No table has rows above this; `nil` before the first request.
    var head: TimeStamp? { self["/head"] }

    /// The head that was frozen before: the device can have rows up to it from downloads that have ended.
    var previous: TimeStamp { self["/previous"] ?? .zero }

    /// What the device was shown by answers to its uploads, as far as this gateway knows.
    var shown: TimeStamp { self["/shown"] ?? .zero }

    /// Up to here the device has the others' rows of all tables.
    var complete: TimeStamp { self["/complete"] ?? .zero }

    /// Up to here the device has the others' rows of a table.
    func complete(_ table: Table) -> TimeStamp { max(complete, self[table.name] ?? .zero) }

    /// The newest row of a table that an answer had: only a device that got the answer can name it.
    func sent(_ table: Table) -> TimeStamp { self["\(table.name)/sent"] ?? .zero }

    /// The greatest time that the device named without having it from a download that is known to have ended.
    func doubtful(_ table: Table) -> TimeStamp { self["\(table.name)/doubtful"] ?? .zero }

    // MARK: Changes

    static func note(shown timeStamp: TimeStamp, _ session: any FaceSession) async throws {
        try await session.raise([name("/shown", session): timeStamp.rawValue], isDurable: false)
    }

    func raise(complete timeStamp: TimeStamp) async throws {
        try await raise("/complete", timeStamp)
    }

    func raise(complete timeStamp: TimeStamp, of table: Table) async throws {
        guard timeStamp > complete(table) else { return }
        try await raise(table.name, timeStamp)
    }

    func raise(sent timeStamp: TimeStamp, of table: Table) async throws {
        try await raise("\(table.name)/sent", timeStamp)
    }

    func raise(doubtful timeStamp: TimeStamp, of table: Table) async throws {
        try await raise("\(table.name)/doubtful", timeStamp)
    }

    private func raise(_ name: String, _ timeStamp: TimeStamp) async throws {
        guard timeStamp > self[name] ?? .zero else { return }
        try await session.raise([Self.name(name, session): timeStamp.rawValue], isDurable: false)
    }

    /// Freezes the head; stored at all gateways when it returns.
    func freeze(_ newest: TimeStamp) async throws {
        var raised: [String: Int64] = [:]
        // A device's first head is also what it can have already: from the file of another one, for example.
        let previous = head ?? newest
        if previous > self.previous { raised[Self.name("/previous", session)] = previous.rawValue }
        if head.map({ newest > $0 }) ?? true { raised[Self.name("/head", session)] = newest.rawValue }
        if raised.isEmpty { return }
        try await session.raise(raised, isDurable: true)
    }
}

extension FaceRow {
    /// Whether the device may lack a row: another one wrote it, or it is not as the device sent it.
    var isNews: Bool { writer != .device || (!isDeleted && isExact != true) }
}
