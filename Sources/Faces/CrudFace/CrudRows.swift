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
    private let position: WrittenPosition
    /// The last members of every record: `user_id` and `sync_status`.
    let synced: [UInt8]

    init(_ session: any FaceSession) {
        self.session = session
        position = WrittenPosition(session)
        var writer = JSONWriter()
        writer.member("user_id", session.device.caller.text)
        writer.member("sync_status", "synced" as StaticString)
        synced = writer.take()
    }

    /// Submits changes, and notes that the device has written them.
    func submit(_ batch: FaceBatch) async throws -> FaceOutcome {
        let outcome = try await session.submit(batch)
        try await position.raise(to: outcome.head, isDurable: false)
        return outcome
    }

    /// What reads of the device must have reached.
    ///
    /// - Parameter isFresh: also what other gateways have noted.
    func written(isFresh: Bool = false) async throws -> TimeStamp {
        try await position.read(isFresh: isFresh)
    }

    /// Some rows of a selection, in a stream that has reached a timeStamp, if any can.
    ///
    /// - Parameter head: what the stream had in which the rows before were read; `nil` at the beginning.
    func rows(
        _ selection: StreamSelection, limit: Int = StreamQuery.maximumRows, leastHead: TimeStamp,
        continuing head: TimeStamp? = nil
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp) {
        // The device named nothing.
        try await session.rows(selection, limit: limit, leastHead: .zero, kept: leastHead, continuing: head)
    }

    /// The newest version of a row; `nil` where there is none.
    func row(_ table: Int, _ id: RowID, leastHead: TimeStamp) async throws -> FaceRow? {
        try await rows(.ids(table: table, [id]), limit: 1, leastHead: leastHead).rows.first
    }
}
