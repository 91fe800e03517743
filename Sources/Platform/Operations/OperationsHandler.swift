import HTTP
import JSONText
import Metrics
import ServiceLifecycle

/// Serves `/metrics`, `/healthz` and `/readyz`.
struct OperationsHandler: HTTPHandler {
    let metrics: MetricRegistry
    let readiness: Readiness
    let liveness: Liveness

    func bodyPolicy(for request: HTTPRequest) -> HTTPBodyPolicy { .acceptUpTo(0) }

    func respond(to request: HTTPRequest) -> HTTPHandlerResult {
        guard request.segments.count == 1, let page = Page(request.segments[0]) else {
            return .response(Self.text(404, "not found; available: /metrics, /healthz and /readyz"))
        }
        guard request.method == .get || request.method == .head else {
            var response = Self.text(405, "allowed: GET, HEAD")
            response.headers.append(HTTPField("Allow", "GET, HEAD"))
            return .response(response)
        }
        switch page {
        case .metrics:
            return .task { [metrics] in
                HTTPResponse(
                    status: 200,
                    headers: [HTTPField("Content-Type", "text/plain; version=0.0.4; charset=utf-8")],
                    body: await metrics.text(), isCompressible: true)
            }
        case .health: return .response(health())
        case .readiness: return .task { [readiness] in Self.ready(await readiness.probedReport()) }
        }
    }

    private enum Page {
        case metrics, health, readiness

        init?(_ segment: String) {
            if segment.utf8.elementsEqual("metrics".utf8) {
                self = .metrics
            } else if segment.utf8.elementsEqual("healthz".utf8) {
                self = .health
            } else if segment.utf8.elementsEqual("readyz".utf8) {
                self = .readiness
            } else {
                return nil
            }
        }
    }

    /// Runs on the server's own thread, so that it responds however busy the process is.
    private func health() -> HTTPResponse {
        let stalls = liveness.stalls().map { ($0.name, "no response for \($0.time.components.seconds) seconds") }
        return Self.report(isGood: stalls.isEmpty, good: "alive", bad: "stalled", reasons: stalls)
    }

    private static func ready(_ report: Readiness.Report) -> HTTPResponse {
        let reasons = report.conditions.compactMap { entry in entry.unreadyReason.map { (entry.name, $0) } }
        return Self.report(isGood: report.isReady, good: "ready", bad: "not ready", reasons: reasons)
    }

    /// `{"status": …, "reasons": {…}}`.
    private static func report(
        isGood: Bool, good: String, bad: String, reasons: [(name: String, reason: String)]
    ) -> HTTPResponse {
        var writer = JSONWriter(capacity: 256)
        writer.object { writer in
            writer.member("status", isGood ? good : bad)
            if reasons.isEmpty { return }
            writer.name("reasons")
            writer.object { writer in
                for (name, reason) in reasons {
                    writer.name(name)
                    writer.value(reason)
                }
            }
        }
        return HTTPResponse(
            status: isGood ? 200 : 503,
            headers: [HTTPField("Content-Type", "application/json"), HTTPField("Cache-Control", "no-store")],
            body: writer.take() + [UInt8(ascii: "\n")])
    }

    private static func text(_ status: Int, _ text: String) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [HTTPField("Content-Type", "text/plain; charset=utf-8")],
            body: Array((text + "\n").utf8))
    }
}
