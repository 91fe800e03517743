import ChangeLog
import Observability
import RecordStore
import ServiceLifecycle

/// Removes old records from topics that are not kept permanently, once an hour.
struct Retention<Log: PrunableLog>: Service {
    let log: Log
    let topics: [Topic]
    let keep: Duration
    /// The offsets of a topic, by partition, from which on records are kept whatever their age.
    let floors: @Sendable (Topic) async throws -> [Int: Int64]
    let logger: Logger
    var clock: any Clock<Duration> = ContinuousClock()

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                while true {
                    await remove()
                    try await clock.sleep(for: .seconds(3600))
                }
            }
        } catch is CancellationError {
            // The process stops.
        }
    }

    private func remove() async {
        let time = WallClock.microseconds() - keep.components.seconds * 1_000_000
        for topic in topics {
            do {
                try await log.removeRecords(of: topic, before: time, floors: floors(topic))
            } catch {
                logger.warning(
                    "Old records could not be removed", [.topic: .string(topic.rawValue), .error: .string("\(error)")])
            }
        }
    }
}

extension Topic {
    static var prunable: [Topic] { allCases.filter { !$0.isKeptForEver } }
}

extension RecordStore {
    /// The offsets from which on retention keeps records: of `ordered` those that the tables do not contain yet, since a stream
    /// that is rebuilt from the tables resumes there; all records of a partition that has no tables yet.
    func floors(of topic: Topic, partitions: Int) async throws(RecordStoreError) -> [Int: Int64] {
        guard topic == .ordered else { return [:] }
        var floors: [Int: Int64] = [:]
        for partition in 0..<partitions { floors[partition] = try await position(of: partition)?.orderedOffset ?? 0 }
        return floors
    }
}
