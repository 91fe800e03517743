import ChangeLog
import Kafka

/// Whether the topics are still those of the history, while a process works with them.
extension KafkaChangeLog {
    /// Looks whether topics hold what they held.
    ///
    /// One that does not is refused from then on where its records cannot be made again: appends to it fail until its ends are
    /// where they were. What cannot be asked at the moment is looked at the next time.
    ///
    /// - Returns: why a topic cannot be looked at, where waiting does not help.
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
                    topicGuard.miss(topic)
                } else if !error.isRetriable {
                    refusal = error
                }
            }
        }
        return refusal
    }

    /// Why nothing can be done with topics, in words for an operator; `nil` where all is well.
    package func fault(of topics: [Topic]) -> ChangeLogError? { topicGuard.fault(of: topics) }

    /// Waits until one of the topics lacks what it held.
    ///
    /// - Returns: what is missing; `nil` when the task is cancelled first.
    package func nextLoss(of topics: [Topic]) async -> ChangeLogError? { await topicGuard.nextLoss(of: topics) }

    /// The partition has held a record, as somebody knows who has seen what came of it.
    package func noteRecord(at offset: Int64, of partition: TopicPartition) {
        topicGuard.note(partition, end: offset + 1)
    }

    /// Has every append fail, since the topics are not known to be those of the history; what is not delivered is given up.
    package func halt(_ reason: any Error) {
        let error = ChangeLogError(.other, message: "\(reason)", isRetriable: true)
        topicGuard.halt(error)
        abandonProducers(error)
    }

    /// The history was seen in the cluster: appends are taken.
    package func goOn() { topicGuard.goOn(in: client.clusterID) }
}
