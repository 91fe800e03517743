import ChangeLog
import Ingest
import SyncModel
import Synchronization

/// What a service reported.
final class Events: Sendable {
    private let events = Mutex<[IngestEvent]>([])

    /// One for each partition that pauses.
    let pauses = Tally()

    @Sendable func add(_ event: IngestEvent) {
        events.withLock { $0.append(event) }
        if case .paused = event { pauses.add() }
    }

    var paused: [any Error] {
        events.withLock { $0.compactMap { if case .paused(2, let cause) = $0 { cause } else { nil } } }
    }

    var resumptions: Int { events.withLock { $0.count { if case .resumed(2) = $0 { true } else { false } } } }

    var restarts: [ChangeLogError] {
        events.withLock {
            $0.compactMap { if case .restarting(2, let cause as ChangeLogError, _) = $0 { cause } else { nil } }
        }
    }

    var uncommitted: [Int] {
        events.withLock {
            $0.compactMap { if case .endedUncommitted(let partition, _) = $0 { partition } else { nil } }
        }
    }

    var refusedRecords: [UploadReference] {
        events.withLock { $0.compactMap { if case .recordRefused(let upload, _) = $0 { upload } else { nil } } }
    }

    var counts: [IngestCounts] {
        events.withLock { $0.compactMap { if case .admitted(2, let counts) = $0 { counts } else { nil } } }
    }
}
