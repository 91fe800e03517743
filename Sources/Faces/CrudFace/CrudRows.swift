import FanOutLink
import Gateway
import JSONText
import SyncModel

/// The caller's rows, never older than what the device wrote.
///
/// A client removes what it has as synced and a whole answer lacks, so the head of each write that was answered is a position of the
/// device, and no read is older.
struct CrudRows: Sendable {
    let session: any FaceSession
    /// The last members of every record: `user_id` and `sync_status`.
    let synced: [UInt8]

    init(_ session: any FaceSession) {
        self.session = session
        var writer = JSONWriter()
        writer.member("user_id", session.device.caller.text)
        writer.member("sync_status", "synced" as StaticString)
        synced = writer.take()
    }

    /// The name of the position; one of another history means nothing.
    private var name: String { "\(session.epoch) written" }

    /// Submits changes, and notes that the device has written them.
    func submit(_ batch: FaceBatch) async throws -> FaceOutcome {
        let outcome = try await session.submit(batch)
        try await session.raise([name: outcome.head.rawValue], isDurable: false)
        return outcome
    }

    /// What reads of the device must have reached.
    ///
    /// - Parameter isFresh: also what other gateways have noted.
    func written(isFresh: Bool = false) async throws -> TimeStamp {
        TimeStamp(try await session.positions(isFresh: isFresh)[name] ?? 0)
    }

    /// Some rows of a selection, in a stream that has reached a timeStamp, if any can.
    ///
    /// - Parameter head: what the stream had in which the rows before were read; `nil` at the beginning.
    func rows(
        _ selection: StreamSelection, limit: Int = StreamQuery.maximumRows, leastHead: TimeStamp,
        continuing head: TimeStamp? = nil
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp) {
        do {
            return try await session.rows(selection, limit: limit, leastHead: leastHead, continuing: head)
        } catch let problem as Problem where problem.code == .positionAhead && leastHead > .zero {
            // The log was restored, and has less than the device wrote.
            return try await session.rows(selection, limit: limit, leastHead: .zero)
        }
    }

    /// The newest version of a row; `nil` where there is none.
    func row(_ table: Int, _ id: RowID, leastHead: TimeStamp) async throws -> FaceRow? {
        try await rows(.ids(table: table, [id]), limit: 1, leastHead: leastHead).rows.first
    }
}
