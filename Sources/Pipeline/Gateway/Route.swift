import HTTP

/// The paths that the gateway serves, declared once: the document under `/openapi.json` is held against them.
enum Route: Int, CaseIterable {
    case sync
    case upload
    case pull
    case batch
    case watch
    case schema
    case openAPI
    case errors

    /// The path as the document spells it.
    var template: String {
        switch self {
        case .sync: "/v1/sync"
        case .upload: "/v1/upload"
        case .pull: "/v1/pull"
        case .batch: "/v1/batches/{batch}"
        case .watch: "/v1/watch"
        case .schema: "/v1/schema"
        case .openAPI: "/openapi.json"
        case .errors: Problem.documentation
        }
    }

    /// The method; GET stands for HEAD, too.
    var method: HTTPMethod {
        switch self {
        case .sync, .upload, .pull: .post
        case .batch, .watch, .schema, .openAPI, .errors: .get
        }
    }

    /// What `Allow` says.
    var allow: String { method == .get ? "GET, HEAD, OPTIONS" : "POST, OPTIONS" }

    /// The fields of a body that the route reads.
    var fields: Envelope.Fields {
        switch self {
        case .sync: [.upload, .pull]
        case .upload: .upload
        case .pull: [.pull, .waiting]
        default: []
        }
    }

    /// The route of a path.
    init?(_ segments: [String]) {
        switch segments.count {
        case 1 where Self.same(segments[0], "openapi.json"): self = .openAPI
        case 2 where Self.same(segments[0], "docs") && Self.same(segments[1], "errors.md"): self = .errors
        case 2 where Self.same(segments[0], "v1"):
            switch segments[1].utf8.count {
            case 4 where Self.same(segments[1], "sync"): self = .sync
            case 4 where Self.same(segments[1], "pull"): self = .pull
            case 6 where Self.same(segments[1], "upload"): self = .upload
            case 6 where Self.same(segments[1], "schema"): self = .schema
            case 5 where Self.same(segments[1], "watch"): self = .watch
            default: return nil
            }
        case 3 where Self.same(segments[0], "v1") && Self.same(segments[1], "batches"): self = .batch
        default: return nil
        }
    }

    private static func same(_ segment: String, _ name: String) -> Bool { segment.utf8.elementsEqual(name.utf8) }
}

/// Public so that tests can hold the document against the routes.
package enum GatewayRoutes {
    /// Method in lower case and path of every route, as an OpenAPI document names them.
    package static var all: [(method: String, path: String)] {
        Route.allCases.map { ($0.method == .get ? "get" : "post", $0.template) }
    }
}
