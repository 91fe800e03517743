import ChangeLog
import Kafka
import Observability
import Synchronization
import ThreadExecutor

/// A Kafka client with the thread that polls its events.
final class ClientService: Sendable {
    let client: KafkaClient
    private let thread: DedicatedThread
    private let serving: Task<Void, Never>
    private let stopping: StopFlag
    private let lastError: LastError
    /// The client's last error about its connections to brokers.
    private final class LastError: Sendable {
        private let state = Mutex<String?>(nil)
        var text: String? { state.withLock { $0 } }

        func record(_ event: borrowing KafkaEvent) {
            // `allBrokersDown` says less than the errors before it.
            guard event.kind == .error, let error = event.error, error.code != .allBrokersDown else { return }
            // librdkafka appends the elapsed time, which differs each time.
            let end = error.description.firstRange(of: " (after ")?.lowerBound ?? error.description.endIndex
            state.withLock { $0 = String(error.description[..<end]) }
        }
    }

    private final class StopFlag: Sendable {
        private let state = Mutex(false)
        var isSet: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    /// - Parameter handle: called with every event, on the client's thread.
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
        let stopping = StopFlag()
        let lastError = LastError()
        self.lastError = lastError
        self.thread = thread
        self.client = client
        self.stopping = stopping
        serving = Task {
            await thread.run {
                while !stopping.isSet {
                    do throws(KafkaError) {
                        guard let event = try client.poll() else { continue }
                        logger.write(event)
                        lastError.record(event)
                        handle(event)
                    } catch {
                        preconditionFailure("the client is closed after its thread has ended: \(error)")
                    }
                }
            }
        }
    }

    /// Earlier versions of librdkafka send a field of SCRAM twice, which newer brokers reject.
    private static let firstVersionForScram = (2, 6, 1)

    /// Adds the client's last error: if a password or certificate was rejected, the call itself reports only a timeout.
    func explaining(_ error: ChangeLogError) -> ChangeLogError {
        guard error.isRetriable, let cause = lastError.text else { return error }
        var message = "\(error.message); last error of the client: \(cause)"
        if cause.contains("SCRAM-"), KafkaClient.libraryVersion < Self.firstVersionForScram {
            message += "; brokers of Kafka 4 reject the SCRAM of librdkafka before 2.6.1, see docs/kafka.md"
        }
        return ChangeLogError(error.code, partition: error.partition, message: message, isRetriable: true)
    }

    /// Ends the thread and the client; must be called only once.
    func close() async {
        stopping.set()
        client.wake()
        await serving.value
        await client.close(on: thread)
        await thread.close()
    }
}

extension Logger {
    /// Logs a client's error or log line; librdkafka redacts secrets.
    func write(_ event: borrowing KafkaEvent) {
        switch event.kind {
        case .error:
            guard let error = event.error else { return }
            if error.isFatal {
                self.error("A Kafka client failed", [.code: .text(error.code.name)], error: error)
            } else {
                warning("Kafka reports an error", [.code: .text(error.code.name)], error: error)
            }
        case .log:
            let line = event.logLine()
            // These lines repeat an error event, or warn at each start that the gapless guarantee is experimental.
            let isRepetition = ["FAIL", "ERROR", "CONFWARN"].contains(line.facility)
            let level: LogLevel =
                switch line.level {
                case ...4: isRepetition ? .debug : .warning
                case 5, 6: .debug
                default: .trace
                }
            log(level, "librdkafka log", [.code: .string(line.facility), .reason: .string(line.text)])
        default: return
        }
    }
}

/// Runs a body in a task of its own; only the first call does, and all calls wait for its end.
final class OneTimeTask: Sendable {
    private let task = Mutex<Task<Void, Never>?>(nil)

    func run(_ body: @escaping @Sendable () async -> Void) async {
        let running = task.withLock { task in
            if let task { return task }
            let begun = Task { await body() }
            task = begun
            return begun
        }
        await running.value
    }
}
