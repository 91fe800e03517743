import ChangeLog
import Control
import DeviceRegistry
import Digest
import Observability
import OwnerFileStore
import RecordStore
import ServiceLifecycle
import SyncModel
import SyncWire

/// The log, the history and the tables that the stages of a process work on: files of one folder, or Kafka and Postgres.
package protocol Backend: Sendable {
    associatedtype Log: PrunableLog
    associatedtype Tables: RecordStore

    var log: Log { get }
    var control: ControlTopic { get }
    /// Traps in a process that was opened without tables.
    var tables: Tables { get }
    /// Traps in a process that was opened without it.
    var devices: any DeviceRegistry { get }
    /// `nil` where no owners' files are kept.
    var files: (any OwnerFileStore)? { get }
    /// How long records of the topics that are not kept permanently are kept.
    var keep: Duration { get }
    /// How long all streams may take until they serve, before a start of all roles fails.
    var startLimit: Duration { get }
    /// Whether what fails in a stage keeps the process from being ready until it is retried with success.
    var reportsFailures: Bool { get }

    /// Adds metrics, probes and watchdogs of the backend itself.
    func addMonitoring(to monitoring: Monitoring)

    /// The services that the backend needs while stages use these topics.
    func services(for topics: [Topic], _ monitoring: Monitoring, _ logger: Logger) -> [ServiceGroup.Member]

    /// The service that runs a stage.
    func service(
        of role: Role, _ monitoring: Monitoring, _ logger: Logger, run: @escaping @Sendable () async throws -> Void
    ) -> CancelledService

    /// Records up to which record of `uploads` everything can be pulled.
    func recordPassed(_ upload: UploadReference)

    func close() async throws
}

extension Backend {
    package var partitions: [Int] { Array(0..<control.history.partitions) }
}

extension History {
    /// Proposes a new history, with an epoch of its own: 16 random bytes in hexadecimal.
    package static func new(
        _ pipeline: PipelineConfiguration, for log: some ChangeLog, partitions: Int, shards: Int = 1
    ) -> History {
        // Larger messages cannot be read, whatever the log accepts.
        let recordSize = min(log.maximumRecordSize, WireLimits.standard.byteCount)
        var random = SystemRandomNumberGenerator()
        let epoch = hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
        return History(
            epoch: epoch, partitions: partitions, clock: pipeline.clock, pieceSize: pipeline.pieceBytes,
            shards: shards, recordSize: recordSize)
    }

    /// Proposes a history for topics that exist.
    ///
    /// - Throws: where the settings name another number of partitions than the topics have.
    package static func proposed(
        _ pipeline: PipelineConfiguration, for log: some ChangeLog, shards: Int
    ) throws -> History {
        if let partitions = pipeline.partitions, partitions != log.partitionCount {
            throw ControlError.otherPartitionCount(recorded: log.partitionCount, configured: partitions)
        }
        return new(pipeline, for: log, partitions: log.partitionCount, shards: shards)
    }
}
