import ChangeLog
import Kafka

/// Checks that the topics keep their records while a process uses them; see ``TopicGuard``.
extension KafkaChangeLog {
    /// Compares the ends of topics with the known ones.
    ///
    /// If a topic has lost records that cannot be rebuilt, appends to it fail from then on, until its ends are back. A topic that
    /// cannot be read at the moment is checked by the next call.
    ///
    /// - Returns: an error that retrying does not solve.
    package func compareEnds(of topics: [Topic]) async -> ChangeLogError? {
        var refusal: ChangeLogError?
        for topic in topics {
            let known = topicGuard.ends(of: topic)
            let name = self.topics.name(of: topic)
            do throws(ChangeLogError) {
                let ends = try await calls.run(TopicPartition(topic, 0)) { [client] () throws(KafkaError) in
                    try client.ends(topic: name, partitionCount: known.count, milliseconds: BlockingCalls.limit)
                }
                topicGuard.compare(topic, ends, with: known)
            } catch {
                if error.code == .unknownPartition {
                    topicGuard.recordMissing(topic)
                } else if !error.isRetriable {
                    refusal = error
                }
            }
        }
        return refusal
    }

    /// Why one of the topics cannot be used, as text for an operator; `nil` if all can.
    package func fault(of topics: [Topic]) -> ChangeLogError? { topicGuard.fault(of: topics) }

    /// Waits for the next loss of records of one of the topics; `nil` when the task is cancelled.
    package func nextLoss(of topics: [Topic]) async -> ChangeLogError? { await topicGuard.nextLoss(of: topics) }

    /// Records that the partition has had a record at this offset, known from a result of it.
    package func recordOffset(_ offset: Int64, of partition: TopicPartition) {
        topicGuard.record(end: offset + 1, of: partition)
    }

    /// Fails every append until ``resumeAppends()``, since the topics may not have the process's epoch; drops what is not
    /// delivered.
    package func suspendAppends(_ reason: any Error) {
        let error = ChangeLogError(.other, message: "\(reason)", isRetriable: true)
        topicGuard.suspend(error)
        abandonProducers(error)
    }

    /// Allows appends, since `control` has the process's epoch.
    package func resumeAppends() { topicGuard.resume(in: client.clusterID) }
}
