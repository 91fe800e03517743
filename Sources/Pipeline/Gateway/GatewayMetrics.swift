import HTTP
import Metrics

/// What the gateway counts.
package struct GatewayMetrics: Sendable {
    let uploads: Counter
    let changes: Counter
    let uploadSize: Histogram
    let appendDuration: Histogram
    let appendFailures: Counter
    private let problems: [ProblemCode: Counter]
    /// At the places of the routes; the last one is of requests without a route.
    private let routes: [RouteMetrics]

    /// Takes the numbers from a registry; by default from one that nobody looks at.
    package init(_ registry: MetricRegistry = MetricRegistry()) {
        uploads = registry.counter(.gatewayUploads)
        changes = registry.counter(.gatewayChanges)
        uploadSize = registry.histogram(.gatewayUploadSize)
        appendDuration = registry.histogram(.gatewayAppendDuration)
        appendFailures = registry.counter(.gatewayAppendFailures)
        problems = Dictionary(
            uniqueKeysWithValues: ProblemCode.allCases.map {
                ($0, registry.counter(.gatewayProblems, [.reason: $0.rawValue]))
            })
        routes = (Route.allCases.map(\.template) + ["other"]).map { RouteMetrics(registry, $0) }
    }

    /// Counts an answer that is a problem.
    func note(_ problem: Problem) { problems[problem.code]?.add() }

    /// The numbers of a request's route.
    func route(of request: HTTPRequest) -> RouteMetrics {
        routes[Route(request.segments)?.rawValue ?? routes.count - 1]
    }
}

/// What is counted of the requests to one route.
struct RouteMetrics: Sendable {
    private static let statuses = [200, 202, 204, 304, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503, 504]

    /// At the places of the statuses; the last one is of any other.
    private let answers: [Counter]
    private let duration: Histogram

    init(_ registry: MetricRegistry, _ route: String) {
        answers = (Self.statuses.map { "\($0)" } + ["other"]).map {
            registry.counter(.httpRequests, [.route: route, .status: $0])
        }
        duration = registry.histogram(.httpDuration, [.route: route])
    }

    /// Counts an answer.
    func note(_ response: HTTPResponse, _ watch: Stopwatch) {
        answers[Self.statuses.firstIndex(of: response.status) ?? Self.statuses.count].add()
        duration.record(watch.nanoseconds)
    }
}

/// Counts the answers of a handler.
struct MeteredHandler<Handler: HTTPHandler>: HTTPHandler {
    let handler: Handler
    let metrics: GatewayMetrics

    func admit(_ request: HTTPRequest) -> HTTPAdmission {
        let watch = Stopwatch()
        let admission = handler.admit(request)
        if case .refuse(let response) = admission { metrics.route(of: request).note(response, watch) }
        return admission
    }

    func respond(to request: HTTPRequest) -> HTTPAnswer {
        let watch = Stopwatch()
        let route = metrics.route(of: request)
        switch handler.respond(to: request) {
        case .response(let response):
            route.note(response, watch)
            return .response(response)
        case .task(let work):
            return .task {
                let response = await work()
                route.note(response, watch)
                return response
            }
        }
    }
}
