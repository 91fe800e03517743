import ChangeLog
import Commands
import Gateway
import HTTP
import Metrics
import Operations
import ServiceLifecycle

/// The metrics, readiness and liveness of the process.
struct Monitoring: Sendable {
    let metrics = MetricRegistry()
    let readiness = Readiness()
    let liveness = Liveness()
    var conditions: Conditions { Conditions(readiness) }

    init() {
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

/// The conditions that keep a process from being ready; a process has those of its roles.
struct Conditions: Sendable {
    private let readiness: Readiness

    init(_ readiness: Readiness) { self.readiness = readiness }

    /// Log and tables are open.
    func storage() -> ReadinessCondition {
        readiness.addCondition("storage", unready: "the log and the tables are being opened")
    }

    /// The topics have the epoch and hold all their records.
    func history() -> ReadinessCondition {
        readiness.addCondition("history", unready: "the topics have not been checked yet")
    }

    /// The streams of all partitions serve.
    func streams() -> ReadinessCondition {
        readiness.addCondition("streams", unready: "the streams are being opened")
    }

    /// Every partition has a fan-out that serves it.
    func fanOuts() -> ReadinessCondition {
        readiness.addCondition("fanouts", unready: "no fan-out is connected yet")
    }

    /// Requests are accepted.
    func gateway() -> ReadinessCondition {
        readiness.addCondition("gateway", unready: "the gateway does not listen yet")
    }

    func stage(_ role: Role) -> ReadinessCondition {
        readiness.addCondition(role.rawValue, unready: "the stage has not started yet")
    }
}

extension MetricRegistry {
    /// Exposes the counters of a gateway.
    func collect(_ counters: @escaping @Sendable () -> GatewayCounters) {
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
