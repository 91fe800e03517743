import ChangeLog
import Commands
import Configuration
import EmbeddedPipeline
import KafkaChangeLog
import Observability

/// `weir topics create` and `weir topics check`.
enum TopicsCommand {
    private static let replication = CommandOption(
        "replication", .required("N"), "Copies of each partition; 3 by default.")
    private static let minimumInSync = CommandOption(
        "min-insync-replicas", .required("N"),
        "Copies that must have a record before it is acknowledged; 2 by default, 1 where there is one copy.")

    /// Partitions where the setting says nothing.
    private static let partitions = 64
    private static let replicationRange = 1...100

    static let command = Command(
        "topics", "Make and check the topics in Kafka.",
        subcommands: [
            Command(
                "create", "Make the topics that are missing.",
                Weir.Action { invocation in
                    let settings = try Settings.load(
                        invocation, except: [replication, minimumInSync], CreateSettings.init
                    ).settings
                    return try await settings.topics.log.withLogger { logger in
                        try await create(settings.topics.kafka, settings.partitions, logger, invocation)
                    }
                },
                options: [replication, minimumInSync] + Settings.schema.options { _ = CreateSettings($0) },
                discussion: """
                    Creates missing topics and leaves existing ones as they are. The setting partitions is their number of
                    partitions, 64 by default, which never changes. Ends with the findings of `weir topics check`.
                    """),
            Command(
                "check", "Say what is wrong with the topics.",
                Weir.Action { invocation in
                    let settings = try Settings.load(invocation, TopicSettings.init).settings
                    return await settings.log.withLogger { await check(settings.kafka, $0) }
                },
                options: Settings.schema.options { _ = TopicSettings($0) },
                discussion: """
                    Says what of the topics would break what Weir promises (errors) and what endangers it (warnings). Exit codes: 0 no
                    errors, 1 errors, 2 Kafka cannot be asked.
                    """),
        ])

    private struct TopicSettings: Sendable {
        let log: LogConfiguration
        let kafka: KafkaChangeLogConfiguration

        init(_ reader: ConfigurationReader) {
            log = reader.read()
            kafka = reader.read()
        }
    }

    private struct CreateSettings: Sendable {
        let topics: TopicSettings
        let partitions: Int

        init(_ reader: ConfigurationReader) {
            topics = TopicSettings(reader)
            partitions = reader.read(\PipelineConfiguration.partitions) ?? TopicsCommand.partitions
        }
    }

    private static func create(
        _ kafka: KafkaChangeLogConfiguration, _ partitions: Int, _ logger: Logger, _ invocation: Invocation
    ) async throws -> ExitCode {
        var plan = KafkaTopics.Plan(partitions: partitions)
        for (option, property) in [
            (replication, \KafkaTopics.Plan.replicationFactor), (minimumInSync, \.minimumInSyncReplicas),
        ] {
            guard let text = invocation.option(option.name)?.value else { continue }
            guard let number = Int(text), replicationRange.contains(number) else {
                throw UsageError("--\(option.name) is a number from 1 to 100, not \(text)", of: "topics create")
            }
            plan[keyPath: property] = number
        }
        if invocation.option(minimumInSync.name) == nil {
            plan.minimumInSyncReplicas = min(plan.minimumInSyncReplicas, plan.replicationFactor)
        }
        guard plan.minimumInSyncReplicas <= plan.replicationFactor else {
            throw UsageError(
                "with \(plan.replicationFactor) copies, \(plan.minimumInSyncReplicas) can never be in sync: "
                    + "no record would be accepted", of: "topics create")
        }
        let topics = KafkaTopics(kafka, logger: logger)
        do {
            try await topics.create(plan)
        } catch {
            Output.complain("weir topics create: \(error)")
            return .failure
        }
        return await check(kafka, logger)
    }

    private static func check(_ kafka: KafkaChangeLogConfiguration, _ logger: Logger) async -> ExitCode {
        do {
            let findings = try await KafkaTopics(kafka, logger: logger).check()
            for finding in findings { Output.write(finding.description) }
            let names = Topic.allCases.map { kafka.topicPrefix + $0.rawValue }.joined(separator: ", ")
            if findings.contains(where: { $0.severity == .error }) {
                Output.write("These topics must not be used as they are: see docs/kafka.md.")
                return .failure
            }
            Output.write("The topics can be used: \(names).")
            return .success
        } catch {
            Output.complain("weir topics check cannot say: \(error)")
            return .undecided
        }
    }
}
