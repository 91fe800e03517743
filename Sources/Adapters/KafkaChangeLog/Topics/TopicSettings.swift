import ChangeLog
import Kafka

/// The settings of new topics.
struct TopicSettings {
    private let plan: KafkaTopics.Plan
    private let maximumBatchSize: Int

    init(_ configuration: KafkaChangeLogConfiguration, _ plan: KafkaTopics.Plan) {
        self.plan = plan
        maximumBatchSize = Self.maximumBatchSize(configuration)
    }

    /// The size of a batch that has the largest record.
    static func maximumBatchSize(_ configuration: KafkaChangeLogConfiguration) -> Int {
        configuration.maximumRecordSize + ClientProperties.recordOverhead + (64 << 10)
    }

    func of(_ topic: Topic) -> [(name: String, value: String)] {
        [
            ("cleanup.policy", topic == .control ? "compact" : "delete"),
            // Weir deletes old records itself, since it knows which are still needed.
            ("retention.ms", "-1"),
            ("retention.bytes", "-1"),
            // The only clock of the stages after `uploads` (I4).
            ("message.timestamp.type", "LogAppendTime"),
            ("max.message.bytes", "\(maximumBatchSize)"),
            ("min.insync.replicas", "\(plan.minimumInSyncReplicas)"),
            ("unclean.leader.election.enable", "false"),
            ("compression.type", "producer"),
        ]
    }
}

/// Finds wrong settings of one topic.
struct TopicDiagnosis {
    typealias Finding = (severity: KafkaTopics.Finding.Severity, message: String)

    let topic: Topic
    let description: KafkaTopicDescription
    let settings: [String: String]
    let expectedPartitions: Int
    let maximumBatchSize: Int

    var findings: [Finding] { partitions + replication + retention + records }

    private var partitions: [Finding] {
        let count = description.partitionCount
        guard count != expectedPartitions else { return [] }
        return [
            (
                .error,
                "has \(count) partitions, not \(expectedPartitions): all topics must have equally many, and partitions must "
                    + "never be added"
            )
        ]
    }

    private var replication: [Finding] {
        var findings: [Finding] = []
        let replicas = description.replicationFactor
        let minimum = settings["min.insync.replicas"].flatMap { Int($0) } ?? 1
        if replicas < 3 {
            findings.append(
                (
                    .warning,
                    "has \(replicas) of 3 replicas: the loss of a broker's disk may lose acknowledged changes (I1)"
                ))
        }
        if minimum < 2, replicas > 1 {
            findings.append(
                (.warning, "min.insync.replicas is \(minimum): a single broker can acknowledge, set it to 2 (I1)"))
        }
        if minimum > replicas {
            findings.append(
                (.error, "min.insync.replicas is \(minimum), with \(replicas) replicas: the brokers reject all records")
            )
        } else if minimum == replicas, replicas > 1 {
            findings.append(
                (
                    .warning,
                    "min.insync.replicas is the number of replicas: the brokers reject all records while one of them is down"
                ))
        }
        if settings["unclean.leader.election.enable"] == "true" {
            findings.append(
                (
                    .error,
                    "unclean.leader.election.enable is true: acknowledged changes may be lost, set it to false (I1)"
                ))
        }
        return findings
    }

    private var retention: [Finding] {
        let policy = settings["cleanup.policy"] ?? "delete"
        if topic == .control {
            guard policy != "compact" else { return [] }
            return [(.error, "cleanup.policy is \(policy): set it to compact, since its records are permanent")]
        }
        var findings: [Finding] = []
        if policy != "delete" {
            findings.append((.error, "cleanup.policy is \(policy): records would be lost, set it to delete (I1)"))
        }
        for name in ["retention.ms", "retention.bytes"] {
            guard let limit = settings[name].flatMap({ Int64($0) }), limit >= 0 else { continue }
            switch topic {
            case .changes:
                findings.append((.error, "\(name) is \(limit): its records are permanent, set it to -1"))
            case .uploads:
                findings.append(
                    (.warning, "\(name) is \(limit): uploads not yet ingested by then are lost, set it to -1 (I1)"))
            case .ordered, .deadLetters, .control: break
            }
        }
        return findings
    }

    private var records: [Finding] {
        var findings: [Finding] = []
        let time = settings["message.timestamp.type"] ?? "CreateTime"
        if time != "LogAppendTime" {
            findings.append(
                (.error, "message.timestamp.type is \(time): set it to LogAppendTime before the first record"))
        }
        if let size = settings["max.message.bytes"].flatMap({ Int($0) }), size < maximumBatchSize {
            findings.append(
                (.error, "max.message.bytes is \(size): kafka.max-record-bytes requires \(maximumBatchSize)"))
        }
        return findings
    }
}
