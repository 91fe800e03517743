import HTTP
import Metrics

package struct GatewayMetrics: Sendable {
    let uploads: Counter
    let changes: Counter
    let delayedUploads: Counter
    let uploadSize: Histogram
    let appendDuration: Histogram
    let appendFailures: Counter
    let deviceFailures: Counter
    let storedFiles: Counter
    let olderFiles: Counter
    let failedFiles: Counter
    let fileBytes: Counter
    let rateLimited: [RateLimit: Counter]
    private let problems: [ProblemCode: Counter]
    /// Indexed by `Route.rawValue`; the last one counts requests without a route.
    private let routes: [RouteMetrics]

    /// - Parameter registry: by default one that nothing exports.
    package init(_ registry: MetricRegistry = MetricRegistry()) {
        uploads = registry.counter(.gatewayUploads)
        changes = registry.counter(.gatewayChanges)
        delayedUploads = registry.counter(.gatewayDelayedUploads)
        uploadSize = registry.histogram(.gatewayUploadSize)
        appendDuration = registry.histogram(.gatewayAppendDuration)
        appendFailures = registry.counter(.gatewayAppendFailures)
        deviceFailures = registry.counter(.gatewayDeviceFailures)
        storedFiles = registry.counter(.gatewayFiles, [.outcome: "stored"])
        olderFiles = registry.counter(.gatewayFiles, [.outcome: "older"])
        failedFiles = registry.counter(.gatewayFiles, [.outcome: "failed"])
        fileBytes = registry.counter(.gatewayFileBytes)
        rateLimited = Dictionary(
            uniqueKeysWithValues: RateLimit.all.map {
                ($0, registry.counter(.gatewayRateLimited, [.limit: $0.name]))
            })
        problems = Dictionary(
            uniqueKeysWithValues: ProblemCode.allCases.map {
                ($0, registry.counter(.gatewayProblems, [.reason: $0.rawValue]))
            })
        routes = (Route.allCases.map(\.template) + ["other"]).map { RouteMetrics(registry, $0) }
    }

    func record(_ problem: Problem) { problems[problem.code]?.add() }

    func route(of request: HTTPRequest) -> RouteMetrics {
        routes[Route(request.segments)?.rawValue ?? routes.count - 1]
    }
}

struct RouteMetrics: Sendable {
    private static let statuses = [200, 202, 204, 304, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503, 504]

    /// In the order of `statuses`; the last one counts all other statuses.
    private let responses: [Counter]
    private let duration: Histogram

    init(_ registry: MetricRegistry, _ route: String) {
        responses = (Self.statuses.map { "\($0)" } + ["other"]).map {
            registry.counter(.httpRequests, [.route: route, .status: $0])
        }
        duration = registry.histogram(.httpDuration, [.route: route])
    }

    func record(_ status: Int, _ stopwatch: Stopwatch) {
        responses[Self.statuses.firstIndex(of: status) ?? Self.statuses.count].add()
        duration.record(stopwatch.nanoseconds)
    }
}

/// Counts and times the responses of another handler as they are sent.
struct MeteredHandler<Handler: HTTPHandler>: HTTPHandler {
    let handler: Handler
    let metrics: GatewayMetrics

    func bodyPolicy(for request: HTTPRequest) -> HTTPBodyPolicy {
        let stopwatch = Stopwatch()
        let policy = handler.bodyPolicy(for: request)
        if case .refuse(let response) = policy { metrics.route(of: request).record(response.status, stopwatch) }
        return policy
    }

    func respond(to request: HTTPRequest) -> HTTPHandlerResult {
        let stopwatch = Stopwatch()
        let route = metrics.route(of: request)
        switch handler.respond(to: request) {
        case .response(var response):
            response.onSend = { route.record($0, stopwatch) }
            return .response(response)
        case .task(let work):
            return .task {
                var response = await work()
                response.onSend = { route.record($0, stopwatch) }
                return response
            }
        }
    }
}
