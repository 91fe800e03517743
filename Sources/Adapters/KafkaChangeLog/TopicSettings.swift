import ChangeLog
import Kafka

/// The settings with which topics are made.
struct TopicSettings {
    private let plan: KafkaTopics.Plan
    private let maximumBatchSize: Int

    init(_ configuration: KafkaChangeLogConfiguration, _ plan: KafkaTopics.Plan) {
        self.plan = plan
        maximumBatchSize = Self.maximumBatchSize(configuration)
    }

    /// What the topics must allow for the largest record.
    static func maximumBatchSize(_ configuration: KafkaChangeLogConfiguration) -> Int {
        configuration.maximumRecordSize + ClientProperties.recordOverhead + (64 << 10)
    }

    func of(_ topic: Topic) -> [(name: String, value: String)] {
        [
            ("cleanup.policy", topic == .control ? "compact" : "delete"),
            // Old records are removed by Weir, which knows what was worked on.
            ("retention.ms", "-1"),
            ("retention.bytes", "-1"),
            // The only clock that anything after `uploads` knows (I4).
            ("message.timestamp.type", "LogAppendTime"),
            ("max.message.bytes", "\(maximumBatchSize)"),
            ("min.insync.replicas", "\(plan.minimumInSyncReplicas)"),
            ("unclean.leader.election.enable", "false"),
            ("compression.type", "producer"),
        ]
    }
}

/// What is wrong with one topic.
struct TopicDiagnosis {
    let topic: Topic
    let description: KafkaTopicDescription
    let settings: [String: String]
    let expectedPartitions: Int
    let maximumBatchSize: Int

    var findings: [(severity: KafkaTopics.Finding.Severity, message: String)] {
        partitions + copies + retention + records
    }

    private typealias Findings = [(severity: KafkaTopics.Finding.Severity, message: String)]

    private var partitions: Findings {
        guard description.partitionCount != expectedPartitions else { return [] }
        return [
            (
                .error,
                "has \(description.partitionCount) partitions, not \(expectedPartitions): partitions of a history are equal "
                    + "and never added"
            )
        ]
    }

    private var copies: Findings {
        var findings: Findings = []
        let copies = description.replicationFactor
        let minimum = settings["min.insync.replicas"].flatMap { Int($0) } ?? 1
        if copies < 3 {
            findings.append(
                (.warning, "has \(copies) of 3 copies: losing a broker's disk may lose acknowledged changes (I1)"))
        }
        if minimum < 2, copies > 1 {
            findings.append(
                (.warning, "min.insync.replicas is \(minimum): one broker's word is enough, set it to 2 (I1)"))
        }
        if minimum > copies {
            findings.append(
                (.error, "min.insync.replicas is \(minimum) and there are \(copies) copies: nothing is taken"))
        } else if minimum == copies, copies > 1 {
            findings.append(
                (.warning, "min.insync.replicas is the number of copies: while a broker is down, nothing is taken"))
        }
        if settings["unclean.leader.election.enable"] == "true" {
            findings.append(
                (
                    .error,
                    "unclean.leader.election.enable is true: acknowledged changes may be dropped, set it to false (I1)"
                ))
        }
        return findings
    }

    private var retention: Findings {
        var findings: Findings = []
        let policy = settings["cleanup.policy"] ?? "delete"
        if topic == .control {
            if policy != "compact" {
                findings.append(
                    (.error, "cleanup.policy is \(policy): set it to compact, its records are kept for ever"))
            }
            return findings
        }
        if policy != "delete" {
            findings.append((.error, "cleanup.policy is \(policy): records would be dropped, set it to delete (I1)"))
        }
        for name in ["retention.ms", "retention.bytes"] {
            guard let limit = settings[name].flatMap({ Int64($0) }), limit >= 0 else { continue }
            switch topic {
            case .changes:
                findings.append((.error, "\(name) is \(limit): it is the truth and kept for ever, set it to -1"))
            case .uploads:
                findings.append(
                    (
                        .warning,
                        "\(name) is \(limit): uploads that ingest has not worked on by then are lost, set it to -1 (I1)"
                    ))
            case .ordered, .deadLetters, .control: break
            }
        }
        return findings
    }

    private var records: Findings {
        var findings: Findings = []
        let time = settings["message.timestamp.type"] ?? "CreateTime"
        if time != "LogAppendTime" {
            findings.append(
                (.error, "message.timestamp.type is \(time): set it to LogAppendTime before the first record"))
        }
        if let size = settings["max.message.bytes"].flatMap({ Int($0) }), size < maximumBatchSize {
            findings.append(
                (
                    .error,
                    "max.message.bytes is \(size): records up to kafka.max-record-bytes need \(maximumBatchSize)"
                ))
        }
        return findings
    }
}
