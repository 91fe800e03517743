import ChangeLog
import Commands
import Configuration
import KafkaChangeLog
import Observability

/// `weir topics create` and `weir topics check`.
enum TopicsCommand {
    static let replication = CommandOption(
        "replication", .required("N"), "Copies of each partition; 3 by default.")
    static let minimumInSync = CommandOption(
        "min-insync-replicas", .required("N"),
        "Copies that must have a record before it is acknowledged; 2 by default, 1 where there is one copy.")

    /// Partitions where the setting says nothing.
    private static let partitions = 64
    private static let replicationRange = 1...100

    static let createDiscussion = """
        Makes the topics that are missing; those that are there stay as they are. The setting partitions says how many they
        have, 64 by default, for ever. Ends with what `weir topics check` finds.
        """
    static let checkDiscussion = """
        Says what of the topics would break what Weir promises (errors) and what endangers it (warnings). Exit codes: 0 no
        errors, 1 errors, 2 Kafka cannot be asked.
        """

    static var options: [CommandOption] { Settings.options(of: ["log", "kafka"], and: ["config", "log-format"]) }

    static func create(
        _ kafka: KafkaChangeLogConfiguration, partitions: Int?, _ logger: Logger,
        _ invocation: CommandInvocation<Weir.Action>
    ) async -> ExitCode {
        var plan = KafkaTopics.Plan(partitions: partitions ?? Self.partitions)
        for (option, place) in [
            (replication, \KafkaTopics.Plan.replicationFactor), (minimumInSync, \.minimumInSyncReplicas),
        ] {
            guard let text = invocation.option(option.name)?.value else { continue }
            guard let number = Int(text), replicationRange.contains(number) else {
                Output.complain("Error: --\(option.name) is a number from 1 to 100, not \(text)")
                return .usage
            }
            plan[keyPath: place] = number
        }
        if invocation.option(minimumInSync.name) == nil {
            plan.minimumInSyncReplicas = min(plan.minimumInSyncReplicas, plan.replicationFactor)
        }
        guard plan.minimumInSyncReplicas <= plan.replicationFactor else {
            Output.complain(
                "Error: with \(plan.replicationFactor) copies, \(plan.minimumInSyncReplicas) can never be in sync: "
                    + "no record would be taken")
            return .usage
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

    static func check(_ kafka: KafkaChangeLogConfiguration, _ logger: Logger) async -> ExitCode {
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
