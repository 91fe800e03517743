import ChangeLog
import SyncModel
import SyncWire

/// Why a partition cannot be ordered; the message says what an operator can do.
package enum OrderingError: Error, Sendable, CustomStringConvertible {
    /// The tables have a position that `changes` does not hold.
    case positionOutOfRange(partition: Int, position: Int64, range: LogRange)
    /// The record before the tables' position is not the one that they were brought to.
    case otherRecords(partition: Int, position: Int64)
    /// The tables hold results that `ordered` does not.
    case resultsLost(partition: Int, position: Int64, range: LogRange)
    /// A record breaks the contract of its topic.
    case unreadableRecord(TopicPartition, offset: Int64, reason: String)
    /// A record needs something that this worker lacks.
    case paused(TopicPartition, offset: Int64, reason: OrderingMachine.Pause)

    package var description: String {
        switch self {
        case .positionOutOfRange(let partition, let position, let range):
            """
            changes[\(partition)]: the tables are at offset \(position), the log holds \(range.start) to \(range.end): \
            log and tables have different epochs; restore both from the same moment
            """
        case .otherRecords(let partition, let position):
            """
            changes[\(partition)]: the record before offset \(position) is not the one that the tables were brought to: the \
            topic was recreated; restore it, or begin a new history with empty topics and tables. If an operator left that record \
            out, the partition resumes once this process knows
            """
        case .resultsLost(let partition, let position, let range):
            """
            ordered[\(partition)]: the tables hold results up to offset \(position), the log ends at \(range.end): \
            the log lost records; restore it, or remove the tables so that they are rebuilt from changes
            """
        case .unreadableRecord(let partition, let offset, let reason):
            "\(partition) offset \(offset): the record cannot be read (\(reason)); no record after it is ordered"
        case .paused(let partition, let offset, let reason):
            "\(partition) offset \(offset): \(reason.explanation); no record after it is ordered until then"
        }
    }
}

extension OrderingError {
    /// Why a record of `changes` cannot be ordered whatever `control` holds: it may be left out, since it is no part that ingest
    /// wrote.
    ///
    /// - Returns: `nil` for a record that can be ordered, or may be once a schema version is known or by a newer worker.
    package static func permanent(
        _ record: LogRecord, of partition: Int, history: History, schemas: SchemaHistory
    ) -> OrderingError? {
        let source = TopicPartition(.changes, partition)
        do {
            let part = try ChangePart(decoding: record.value)
            _ = try OrderingMachine(history).step(
                part, state: PartitionState(), schemas: schemas, progress: DeviceProgress(), usage: OwnerUsage(),
                applied: { _ in nil },
                row: { _ in nil })
            return nil
        } catch let error as WireError {
            if error.isNewerFormat { return nil }
            return .unreadableRecord(source, offset: record.offset, reason: "\(error)")
        } catch let pause as OrderingMachine.Pause {
            switch pause {
            case .otherEpoch, .invalidPart: return .paused(source, offset: record.offset, reason: pause)
            case .unknownSchema, .unknownSchemaNumber, .unknownRules, .timeStampsExhausted: return nil
            }
        } catch {
            return nil
        }
    }
}

extension OrderingMachine.Pause {
    /// What is missing, and what to do about it.
    fileprivate var explanation: String {
        switch self {
        case .unknownSchema(let hash):
            "the record names schema version \(hash), which is not known here: control must name it"
        case .unknownSchemaNumber(let number):
            "the partition has reached schema version \(number), which is not known here: control must name it"
        case .unknownRules(let rules):
            "the record needs rules version \(rules), this worker knows \(RulesVersion.current): upgrade it"
        case .otherEpoch(let epoch):
            "the record has epoch \(epoch): the topics were mixed up; restore the right ones"
        case .timeStampsExhausted: "the partition has used up all timeStamps below 2^53"
        case .invalidPart(let reason): "the record breaks the contract of changes: \(reason)"
        }
    }
}
