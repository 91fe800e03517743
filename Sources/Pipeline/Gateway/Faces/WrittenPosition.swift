import FanOutLink
import SyncModel

/// Up to where a device has written, which the streams of its later downloads must have reached.
///
/// One that is behind has rows as they were before the device edited them. The device would lose its edit, and not get it back, since
/// faces leave out what a device has written itself.
package struct WrittenPosition: Sendable {
    private let session: any FaceSession
    /// With the epoch: a position with a different one means nothing.
    private let name: String

    /// - Parameter table: the one whose rows were written; `nil`: any.
    package init(_ session: any FaceSession, of table: FaceTable? = nil) {
        self.session = session
        // No table's name has a space.
        name = table.map { "\(session.epoch) written \($0.table.name)" } ?? "\(session.epoch) written"
    }

    /// - Parameter isFresh: also what other gateways have stored.
    package func read(isFresh: Bool) async throws -> TimeStamp {
        value(in: try await session.positions(isFresh: isFresh))
    }

    /// What positions that were read say.
    package func value(in positions: [String: Int64]) -> TimeStamp { TimeStamp(positions[name] ?? 0) }

    /// - Parameters:
    ///   - head: of a stream that has what was written.
    ///   - isDurable: whether all gateways know it when this returns.
    package func raise(to head: TimeStamp, isDurable: Bool) async throws {
        // Nothing was submitted.
        if head == .zero { return }
        try await session.raise([name: head.rawValue], isDurable: isDurable)
    }
}

extension FaceSession {
    /// The rows of ``rows(_:limit:leastHead:continuing:)``, at the beginning in a stream that has also reached what the server keeps of
    /// the device, if any can: after the log was restored it may have less.
    ///
    /// - Parameters:
    ///   - leastHead: what the device named.
    ///   - kept: what the server keeps of the device, such as a ``WrittenPosition``.
    package func rows(
        _ selection: StreamSelection, limit: Int, leastHead: TimeStamp, kept: TimeStamp, continuing head: TimeStamp?
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp) {
        guard head == nil, kept > leastHead else {
            return try await rows(selection, limit: limit, leastHead: leastHead, continuing: head)
        }
        do {
            return try await rows(selection, limit: limit, leastHead: kept)
        } catch let problem as Problem where problem.code == .positionAhead {
            return try await rows(selection, limit: limit, leastHead: leastHead)
        }
    }
}
