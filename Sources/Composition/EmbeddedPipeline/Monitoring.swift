import ChangeLog
import Commands
import Gateway
import HTTP
import Metrics
import Operations
import ServiceLifecycle
import Synchronization

/// The metrics, readiness and liveness of the process.
package struct Monitoring: Sendable {
    package let metrics = MetricRegistry()
    package let readiness = Readiness()
    package let liveness = Liveness()
    package let conditions: Conditions
    package let reloads = ReloadHandlers()

    /// - Parameter conditions: what must become ready; before the operations port opens, so that it never answers without them.
    package init(conditions: [Condition]) {
        self.conditions = Conditions(readiness)
        for condition in conditions { _ = self.conditions[condition] }
        metrics.gauge(.buildInfo, [.version: Version.text]).set(1)
        let start = Double(WallClock.microseconds()) / 1_000_000
        metrics.collect { [readiness] samples in
            samples.set(.ready, await readiness.probedReport().isReady ? 1 : 0)
            samples.set(.processStart, start)
            let process = ProcessReadings()
            samples.set(.processCPU, process.cpuSeconds)
            if let bytes = process.residentBytes { samples.set(.processMemory, bytes) }
            if let count = process.openDescriptors { samples.set(.processDescriptors, count) }
            if let limit = process.maximumDescriptors { samples.set(.processMaximumDescriptors, limit) }
        }
    }
}

/// What the process reads again when it gets SIGHUP.
package final class ReloadHandlers: Sendable {
    /// One for each gateway of the process.
    private let handlers = Mutex<[@Sendable () -> Void]>([])

    /// - Parameter handler: called on the thread of the signals, so it must return.
    package func add(_ handler: @escaping @Sendable () -> Void) { handlers.withLock { $0.append(handler) } }

    package func reload() {
        for handler in handlers.withLock({ $0 }) { handler() }
    }
}

/// What keeps a process from being ready; a process has the conditions of its roles.
package enum Condition: Hashable, Sendable {
    /// Log and tables are open.
    case storage
    /// The topics have the epoch and hold all their records.
    case history
    /// The streams of all partitions serve.
    case streams
    /// Every partition has a fan-out that serves it.
    case fanOuts
    /// Requests are accepted.
    case gateway
    case stage(Role)

    fileprivate var name: String {
        switch self {
        case .storage: "storage"
        case .history: "history"
        case .streams: "streams"
        case .fanOuts: "fanouts"
        case .gateway: "gateway"
        case .stage(let role): role.rawValue
        }
    }

    fileprivate var firstReason: String {
        switch self {
        case .storage: "the log and the tables are being opened"
        case .history: "the topics have not been checked yet"
        case .streams: "the streams are being opened"
        case .fanOuts: "no fan-out is connected yet"
        case .gateway: "the gateway does not listen yet"
        case .stage: "the stage has not started yet"
        }
    }
}

/// The conditions of a process, each added to its readiness once.
package final class Conditions: Sendable {
    private let readiness: Readiness
    private let added = Mutex<[Condition: ReadinessCondition]>([:])

    package init(_ readiness: Readiness) { self.readiness = readiness }

    package subscript(_ condition: Condition) -> ReadinessCondition {
        added.withLock { added in
            if let existing = added[condition] { return existing }
            let new = readiness.addCondition(condition.name, unready: condition.firstReason)
            added[condition] = new
            return new
        }
    }
}

extension MetricRegistry {
    /// Exposes the counters of a gateway.
    package func collect(_ counters: @escaping @Sendable () -> GatewayCounters) {
        collect { samples in
            let gateway = counters()
            let http = gateway.http
            samples.set(.httpUnderWay, http.requestsUnderWay)
            samples.set(.httpConnections, http.connections)
            samples.set(.httpConnectionsAccepted, http.connectionsAccepted)
            samples.set(.httpConnectionsRefused, [.reason: "total"], http.connectionsOverLimit)
            samples.set(.httpConnectionsRefused, [.reason: "address"], http.connectionsOverClientLimit)
            samples.set(.httpConnectionsTimedOut, http.connectionsTimedOut)
            samples.set(.httpBodyBytes, http.bytesInFlight)
            samples.set(.httpResponseBytes, http.answerBytesInFlight)
            samples.set(.httpCertificateExpiration, http.certificateExpiration ?? 0)
            samples.set(.httpCertificateLoads, http.certificateLoads)
            samples.set(.httpCertificateFailures, http.certificateFailures)
            for reason in HTTPRefusalReason.allCases {
                samples.set(.httpRefusals, [.reason: reason.label], http.refused(reason))
            }
            samples.set(.gatewayWaiting, gateway.waiting)
            samples.set(.gatewayWatchers, gateway.watchers)
            samples.set(.gatewayUnacknowledged, gateway.uploadBytes)
        }
    }
}

extension HTTPRefusalReason {
    fileprivate var label: String {
        switch self {
        case .malformed: "malformed"
        case .timedOut: "timed_out"
        case .bodyTooLarge: "body_too_large"
        case .urlTooLong: "url_too_long"
        case .unsupportedEncoding: "unsupported_encoding"
        case .headersTooLarge: "headers_too_large"
        case .overloaded: "overloaded"
        case .invalidResponse: "invalid_response"
        }
    }
}
