import ChangeLog
import Kafka
import Observability
import Synchronization
import ThreadExecutor

/// A client of Kafka with the thread that serves its events.
final class ClientService: Sendable {
    let client: KafkaClient
    private let thread: DedicatedThread
    private let serving: Task<Void, Never>
    private let isEnding: Ending
    private let report: Report

    /// What a client said last of why it cannot reach its brokers.
    private final class Report: Sendable {
        private let state = Mutex<String?>(nil)
        var text: String? { state.withLock { $0 } }

        func take(_ event: borrowing KafkaEvent) {
            // That nobody is left says no more than what came before.
            guard event.kind == .error, let error = event.error, error.code != .allBrokersDown else { return }
            // Behind it stands how long it took, which differs each time.
            let end = error.description.firstRange(of: " (after ")?.lowerBound ?? error.description.endIndex
            state.withLock { $0 = String(error.description[..<end]) }
        }
    }

    /// Whether the thread is to end.
    private final class Ending: Sendable {
        private let state = Mutex(false)
        var isAsked: Bool { state.withLock { $0 } }
        func ask() { state.withLock { $0 = true } }
    }

    /// Makes a client.
    ///
    /// - Parameter handle: gets every event that is no log line, on the client's thread.
    init(
        _ kind: KafkaClient.Kind, _ properties: KafkaProperties, events: KafkaClient.Events = .none, name: String,
        logger: Logger, _ handle: @escaping @Sendable (borrowing KafkaEvent) -> Void = { _ in }
    ) throws(ChangeLogError) {
        let thread: DedicatedThread
        do {
            thread = try DedicatedThread(name: name)
        } catch {
            throw ChangeLogError(.other, message: "\(error)", isRetriable: true)
        }
        let client: KafkaClient
        do throws(KafkaError) {
            client = try KafkaClient(kind, properties, events: events)
        } catch {
            Task { await thread.close() }
            throw ChangeLogError(error)
        }
        let isEnding = Ending()
        let report = Report()
        self.report = report
        self.thread = thread
        self.client = client
        self.isEnding = isEnding
        serving = Task {
            await thread.run {
                while !isEnding.isAsked {
                    do throws(KafkaError) {
                        guard let event = try client.poll() else { continue }
                        logger.write(event)
                        report.take(event)
                        handle(event)
                    } catch {
                        preconditionFailure("a client is closed after its thread has ended: \(error)")
                    }
                }
            }
        }
    }

    /// Before it librdkafka repeats a part of its answer, which newer brokers do not take.
    private static let firstVersionForScram = (2, 6, 1)

    /// The same error with what the client said of its brokers: of a refused password or certificate a call knows no more than
    /// that nobody answers.
    func explaining(_ error: ChangeLogError) -> ChangeLogError {
        guard error.isRetriable, let report = report.text else { return error }
        var message = "\(error.message); last heard: \(report)"
        if report.contains("SCRAM-"), KafkaClient.libraryVersion < Self.firstVersionForScram {
            message += "; brokers of Kafka 4 refuse the SCRAM of librdkafka before 2.6.1, see docs/kafka.md"
        }
        return ChangeLogError(error.code, partition: error.partition, message: message, isRetriable: true)
    }

    /// Ends the thread and the client; once.
    func close() async {
        isEnding.ask()
        client.wake()
        await serving.value
        await client.close(on: thread)
        await thread.close()
    }
}

extension Logger {
    /// Writes what a client says of itself; librdkafka puts no secrets into it.
    func write(_ event: borrowing KafkaEvent) {
        switch event.kind {
        case .error:
            guard let error = event.error else { return }
            if error.isFatal {
                self.error("A client of Kafka failed", [.code: .text(error.code.name)], error: error)
            } else {
                warning("Kafka reports an error", [.code: .text(error.code.name)], error: error)
            }
        case .log:
            let line = event.logLine()
            // What fails comes as an error, too; and that a guarantee is experimental is no news at every start.
            let isRepetition = ["FAIL", "ERROR", "CONFWARN"].contains(line.facility)
            let level: LogLevel =
                switch line.level {
                case ...4: isRepetition ? .debug : .warning
                case 5, 6: .debug
                default: .trace
                }
            log(level, "librdkafka says", [.code: .string(line.facility), .reason: .string(line.text)])
        default: return
        }
    }
}
