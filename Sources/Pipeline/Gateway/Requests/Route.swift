import HTTP

/// The paths that the gateway serves; a test compares `/openapi.json` with them.
enum Route: Int, CaseIterable {
    case sync
    case upload
    case pull
    case batch
    case watch
    case devices
    case device
    case schema
    case openAPI
    case errors

    /// The path as in the OpenAPI document.
    var template: String {
        switch self {
        case .sync: "/v1/sync"
        case .upload: "/v1/upload"
        case .pull: "/v1/pull"
        case .batch: "/v1/batches/{batch}"
        case .watch: "/v1/watch"
        case .devices: "/v1/devices"
        case .device: "/v1/devices/{knowledgeId}"
        case .schema: "/v1/schema"
        case .openAPI: "/openapi.json"
        case .errors: Problem.documentation
        }
    }

    /// Besides OPTIONS; GET includes HEAD.
    var methods: [HTTPMethod] {
        switch self {
        case .sync, .upload, .pull: [.post]
        case .device: [.patch, .delete]
        case .batch, .watch, .devices, .schema, .openAPI, .errors: [.get, .head]
        }
    }

    /// The value of the header `Allow`.
    var allow: String { (methods + [.options]).map(\.description).joined(separator: ", ") }

    /// Whether the body is a document of the client contract, which its caller must be allowed to send.
    func usesBody(with method: HTTPMethod) -> Bool { method == .post || method == .patch }

    var fields: Envelope.Fields {
        switch self {
        case .sync: [.upload, .pull]
        case .upload: .upload
        case .pull: [.pull, .waiting]
        default: []
        }
    }

    /// What credentials must allow; one of both for an outcome, which is shown without rows to those who may not read.
    var scope: AccessScope {
        switch self {
        case .sync, .batch: [.read, .write]
        case .upload, .device: .write
        case .pull, .watch, .devices: .read
        case .schema, .openAPI, .errors: []
        }
    }

    /// `nil` for an unknown path; a batch without a number is one.
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
            case 7 where Self.same(segments[1], "devices"): self = .devices
            case 5 where Self.same(segments[1], "watch"): self = .watch
            default: return nil
            }
        case 3 where Self.same(segments[0], "v1") && Self.same(segments[1], "batches") && !segments[2].isEmpty:
            self = .batch
        case 3 where Self.same(segments[0], "v1") && Self.same(segments[1], "devices") && !segments[2].isEmpty:
            self = .device
        default: return nil
        }
    }

    private static func same(_ segment: String, _ name: String) -> Bool { segment.utf8.elementsEqual(name.utf8) }
}

/// For the test that compares the OpenAPI document with the routes.
package enum GatewayRoutes {
    /// Method in lower case and path template of every route, as in an OpenAPI document.
    package static var all: [(method: String, path: String)] {
        Route.allCases.flatMap { route in
            route.methods.filter { $0 != .head }.map { ($0.description.lowercased(), route.template) }
        }
    }
}
