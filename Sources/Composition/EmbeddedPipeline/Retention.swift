import ChangeLog
import Ingest
import Observability
import RecordStore
import ServiceLifecycle
import SyncModel

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
                try await log.removeRecords(
                    of: topic, before: time, floors: floors(topic),
                    consumers: topic == .uploads ? [IngestConfiguration.group] : [])
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

extension ChangeLog {
    /// The offsets of `uploads` from which on retention keeps records, whatever Kafka knows of the group: those without a part in
    /// `changes`.
    func uploadFloors(_ history: History) async throws -> [Int: Int64] {
        var floors: [Int: Int64] = [:]
        for partition in 0..<history.partitions {
            let range = try await range(of: TopicPartition(.uploads, partition))
            // A partition without records needs no search.
            if range.start == range.end { continue }
            floors[partition] = try await newestAdmitted(in: partition, of: history) ?? 0
        }
        return floors
    }
}

extension RecordStore {
    /// The offsets of `ordered` from which on retention keeps records: those that the tables do not contain yet, since a stream
    /// that is rebuilt from the tables resumes there; all records of a partition that has no tables yet.
    func orderedFloors(partitions: Int) async throws(RecordStoreError) -> [Int: Int64] {
        var floors: [Int: Int64] = [:]
        for partition in 0..<partitions { floors[partition] = try await position(of: partition)?.orderedOffset ?? 0 }
        return floors
    }
}
