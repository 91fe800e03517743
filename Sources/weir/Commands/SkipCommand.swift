import ChangeLog
import Commands
import Control
import Foundation
import Ingest
import Observability
import Ordering
import SyncModel

/// `weir skip uploads`, `weir skip changes` and `weir skip list`.
enum SkipCommand {
    private static let why = CommandOption(
        "why", .required("TEXT"), "Why the record is left out, for those who read the list later.")

    static let command = Command(
        "skip", "Leave out a record that no worker can process.",
        subcommands: [
            Command(
                "uploads", "Leave out a record of uploads: a batch that ingest cannot read.",
                Weir.Action { try await skip(.uploads, $0) }, arguments: position,
                options: [why] + ControlCommand.options,
                discussion: """
                    For a partition that is paused at a record which names a schema version, rules or a format that will never be known.
                    Ingest appends the record to dead-letters, with the reason. Its batch has no outcome, so that its device may send
                    it again.
                    """ + permanence),
            Command(
                "changes", "Leave out a record of changes that ingest did not write.",
                Weir.Action { try await skip(.changes, $0) }, arguments: position,
                options: [why] + ControlCommand.options,
                discussion: """
                    For a partition that is paused at a record which is no part of a batch, or has another epoch. Ordering, replay and
                    verify pass over it.
                    """ + permanence),
            Command("list", "List the records that are left out.", Weir.Action(list), options: ControlCommand.options),
        ])

    private static let permanence = """

        A record that this version of the program can process is refused, so use the newest one that is deployed. The decision is
        written to control and is permanent. On a cluster it takes effect within a minute; in a data folder, whose process must be
        stopped, at the next start. Exit codes: 0 left out, 1 not.
        """
    private static let position: [CommandArgument] = [
        .one("PARTITION", "The partition, from 0."), .one("OFFSET", "The record's offset in the partition."),
    ]

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static func skip(_ source: SkippedRecord.Source, _ invocation: Invocation) async throws -> ExitCode {
        let name = "skip \(source.rawValue)"
        guard let reason = invocation.option(why.name)?.value,
            (1...SkippedRecord.maximumReasonLength).contains(reason.utf8.count)
        else {
            throw UsageError("--why says in 1 to \(SkippedRecord.maximumReasonLength) bytes why", of: name)
        }
        let numbers = invocation.arguments.map { Int64($0) }
        guard let partition = numbers[0].flatMap(Int.init(exactly:)), let offset = numbers[1], partition >= 0,
            offset >= 0
        else { throw UsageError("PARTITION and OFFSET are numbers from 0", of: name) }
        let position = SkippedRecord.Position(source, partition, offset: offset)
        return try await ControlCommand.run(invocation, except: [why], as: name) { log, control in
            if let entry = control.skipped[source, partition, offset] {
                Output.write("It is left out already: \(describe(entry))")
                return
            }
            let cause = try await obstacle(to: position, in: log, control)
            let entry = try await control.skip(position, reason: reason, in: log)
            Output.write("\(cause)\nLeft out: \(describe(entry))")
        }
    }

    private static func list(_ invocation: Invocation) async throws -> ExitCode {
        try await ControlCommand.run(invocation, except: [], as: "skip list") { _, control in
            let entries = control.skipped.entries
            for entry in entries { Output.write(describe(entry)) }
            if entries.isEmpty { Output.write("No record is left out.") }
        }
    }

    private static func describe(_ entry: SkippedRecords.Entry) -> String {
        let (position, moment) = (entry.record.position, Date(timeIntervalSince1970: Double(entry.time) / 1_000_000))
        return "\(position.topicPartition) offset \(position.offset), since "
            + "\(moment.formatted(.iso8601)): \(entry.record.reason)"
    }

    /// Why no worker can process a record.
    ///
    /// - Throws: where there is no such record, or it can be processed, or may be.
    private static func obstacle(
        to position: SkippedRecord.Position, in log: some ChangeLog, _ control: ControlTopic
    ) async throws -> any Error {
        let (partition, offset) = (position.partition, position.offset)
        let history = control.history
        guard partition < history.partitions else {
            throw Failure(description: "there is no partition \(partition): the topics have \(history.partitions)")
        }
        let source = position.topicPartition
        let range = try await log.range(of: source)
        guard (range.start..<range.end).contains(offset),
            let record = try await log.first(of: source, from: offset), record.offset == offset
        else {
            throw Failure(
                description: "\(source) has no record at offset \(offset): it holds \(range.start) to \(range.end)")
        }
        switch position.source {
        case .uploads:
            if let newest = try await log.newestAdmitted(in: partition, of: history), newest >= offset {
                throw Failure(
                    description: "ingest has passed \(source) offset \(offset): it is at offset \(newest + 1)")
            }
            var admission = Admission(history: history)
            do {
                _ = try admission.admit(record, of: partition, schemas: control.schemas)
            } catch {
                return error
            }
        case .changes:
            if let error = OrderingError.permanent(
                record, of: partition, history: history, schemas: control.schemas)
            {
                return error
            }
        }
        throw Failure(
            description: """
                \(source) offset \(offset) can be processed, or will be by a newer worker or once control names its schema \
                version: it is not left out
                """)
    }
}

extension SkippedRecord.Position {
    fileprivate var topicPartition: TopicPartition {
        TopicPartition(source == .uploads ? .uploads : .changes, partition)
    }
}
