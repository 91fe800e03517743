import DeviceRegistry
import Gateway
import OwnerFileStore
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
/// not uploaded, by the device's clock. It says nothing of the rows below. But a device that names another time than before has got
/// an answer since, and so all that the last answer to an earlier request had, or more.
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

    /// What the device was shown by answers to its uploads: rows of other devices, and its own.
    var shown: TimeStamp { self["/shown"] ?? .zero }

    /// Up to here the device has the others' rows of all tables.
    var complete: TimeStamp {
        let known = self["/complete"] ?? .zero
        return self[Self.withoutFile] == nil ? max(known, self[Self.fileBegun] ?? .zero) : known
    }

    /// Up to here the device has the others' rows of a table.
    func complete(_ table: Table) -> TimeStamp { max(complete, self[table.name] ?? .zero) }

    /// The newest row of another device that an answer for a table had: only a device that got the answer can name it.
    ///
    /// The time of an own row it has from its upload.
    func sent(_ table: Table) -> TimeStamp { self["\(table.name)/sent"] ?? .zero }

    /// Up to here the device has the others' rows of a table if it got the answers to its requests for them.
    func answered(_ table: Table) -> TimeStamp { self["\(table.name)/answered"] ?? .zero }

    /// The greatest time that the device named of which it is not known whether it has all rows below.
    func doubtful(_ table: Table) -> TimeStamp { self["\(table.name)/doubtful"] ?? .zero }

    /// Above the first of these and up to the second there are only rows that are as the device sent them.
    var own: OwnRows { OwnRows(above: self["/own/above"] ?? .zero, upTo: self["/own"] ?? .zero) }

    struct OwnRows {
        var above: TimeStamp
        var upTo: TimeStamp
    }

    // MARK: Changes

    /// The answer to an upload shows a row; all gateways know it when this returns.
    ///
    /// A device may take the time of another device's row for up to where it has downloaded, where it hears of no other device. Its own
    /// row would be replaced by an older one from a stream that is behind, and not come again, since it is no news.
    static func note(shown timeStamp: TimeStamp, _ session: any FaceSession) async throws {
        try await session.raise([name("/shown", session): timeStamp.rawValue], isDurable: true)
    }

    func raise(complete timeStamp: TimeStamp) async throws { try await raise(["/complete": timeStamp]) }

    func raise(complete timeStamp: TimeStamp, of table: Table) async throws {
        guard timeStamp > complete(table) else { return }
        try await raise([table.name: timeStamp])
    }

    /// The whole answer to a request for a table was made.
    ///
    /// - Parameters:
    ///   - sent: its newest row of another device, zero for none; `nil` where it has no rows.
    ///   - answered: no row is above.
    func raise(sent: TimeStamp?, answered: TimeStamp, of table: Table) async throws {
        guard let sent else { return try await raise(complete: answered, of: table) }
        try await raise(["\(table.name)/sent": sent, "\(table.name)/answered": answered])
    }

    /// Stored at all gateways when it returns: a time that is not known to be doubtful would prove too much.
    func raise(doubtful timeStamp: TimeStamp, of table: Table) async throws {
        try await raise(["\(table.name)/doubtful": timeStamp], isDurable: true)
    }

    /// Where the range begins is stored at all gateways before its end rises: from an earlier beginning it would have others' rows.
    ///
    /// - Parameter earlier: what is noted.
    func raise(own: OwnRows, after earlier: OwnRows) async throws {
        if own.above > earlier.above { try await raise(["/own/above": own.above], isDurable: true) }
        try await raise(["/own": own.upTo])
    }

    // MARK: The database file

    /// The device has stored the owner's file, which has the others' rows up to where it had shown to have them.
    func note(stored file: OwnerFile) async throws {
        let least = session.schema.schema.tables.map { complete($0) }.min() ?? complete
        let raised = [Self.file: file.generation, Self.fileComplete: least.rawValue]
        let named = raised.map { (Self.name($0.key, session), $0.value) }
        try await session.raise(Dictionary(uniqueKeysWithValues: named), isDurable: true)
    }

    /// A new device gets the owner's file, and has its rows.
    ///
    /// One that has asked for rows before has a file of its own, and perhaps only reads this one. Where the device that stored it is
    /// not among those seen last, whole tables come again.
    func begin(with file: OwnerFile) async throws {
        if head != nil { return }
        for id in try await latestDevices() where id != session.device.knowledgeID {
            let theirs = try await session.positions(of: id)
            guard theirs[Self.name(Self.file, session)] == file.generation else { continue }
            let complete = theirs[Self.name(Self.fileComplete, session)] ?? 0
            return try await raise([Self.fileBegun: TimeStamp(complete)], isDurable: true)
        }
    }

    /// The devices that were seen last, the latest first.
    private func latestDevices() async throws -> ArraySlice<KnowledgeID> {
        var latest: [(seen: Int64, id: KnowledgeID)] = []
        try await session.devices(isKeeping: false) { device in
            latest.append((device.lastSeen, device.knowledgeID))
            guard latest.count == 10 * Self.searchedDevices else { return }
            latest.sort { $0.seen > $1.seen }
            latest.removeSubrange(Self.searchedDevices...)
        }
        return latest.sorted { $0.seen > $1.seen }.map(\.id).prefix(Self.searchedDevices)
    }

    /// A device that asks for the devices and has no time of a download has not begun with the file that it got.
    ///
    /// Its download was broken off, or the app could not use it. All gateways know it when this returns.
    func startWithoutFile() async throws -> TrackerPositions {
        guard self[Self.fileBegun] != nil, self[Self.withoutFile] == nil else { return self }
        try await raise([Self.withoutFile: TimeStamp(1)], isDurable: true)
        return try await TrackerPositions(session)
    }

    /// Each costs a read of the registry.
    private static let searchedDevices = 100
    private static let file = "/file"
    private static let fileComplete = "/file/complete"
    /// Of a device that got the file: up to where the file has the others' rows.
    private static let fileBegun = "/file/begun"
    private static let withoutFile = "/file/unused"

    private func raise(_ positions: [String: TimeStamp], isDurable: Bool = false) async throws {
        let raised = positions.filter { $0.value > self[$0.key] ?? .zero }
        if raised.isEmpty { return }
        let named = raised.map { (Self.name($0.key, session), $0.value.rawValue) }
        try await session.raise(Dictionary(uniqueKeysWithValues: named), isDurable: isDurable)
    }

    /// Freezes the head; stored at all gateways when it returns.
    func freeze(_ newest: TimeStamp) async throws {
        if let head, newest <= head { return }
        try await session.raise([Self.name("/head", session): newest.rawValue], isDurable: true)
    }
}

extension FaceRow {
    /// Whether the device may lack a row: another one wrote it, or it is not as the device sent it.
    var isNews: Bool { writer != .device || (!isDeleted && isExact != true) }
}
