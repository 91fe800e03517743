import Gateway
import HTTP
import SyncModel
import Testing
import WebTokens

@Suite struct DocumentTests {
    private let document: JSONTree
    private let errors: String

    init() throws {
        document = try JSONTree(Repository.bytes("docs/openapi.json"))
        errors = try Repository.text("docs/errors.md")
    }

    private static let methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]

    private var operations: [(method: String, path: String, operation: JSONTree)] {
        (document["paths"]?.members ?? []).flatMap { path in
            path.value.members.filter { Self.methods.contains($0.name) }.map { ($0.name, path.name, $0.value) }
        }
    }

    @Test func describesEveryRouteAndNoOther() {
        let described = Set(
            operations.filter { $0.operation["tags"]?.elements.compactMap(\.text) != ["faces"] }
                .map { "\($0.method) \($0.path)" })
        #expect(described == Set(GatewayRoutes.all.map { "\($0.method) \($0.path)" }))
    }

    @Test func namesEveryCode() {
        let schemas = document.at("components", "schemas")
        let enums = schemas?.objects.compactMap { $0["enum"]?.elements.compactMap(\.text) } ?? []
        #expect(enums.contains { Set($0) == Set(ProblemCode.allCases.map(\.rawValue)) })
        #expect(enums.contains { Set($0) == Set(RefusalCode.allCases.map(\.rawValue)) })
        #expect(enums.contains { Set($0) == Set(BatchRefusal.allCases.map(\.rawValue)) })
        #expect(enums.contains { Set($0) == Set(Policy.allCases.map(\.rawValue)) })
        let causes = TokenRefusal.Cause.allCases.map(\.rawValue)
        #expect(enums.contains { Set($0) == Set(causes) })
        for cause in causes { #expect(section("unauthenticated").contains("| `\(cause)` | "), "\(cause)") }
        let responses = document.at("components", "responses")?.members ?? []
        for code in ProblemCode.allCases {
            let describing = responses.filter { $0.value["description"]?.text?.contains("`\(code.rawValue)`") ?? false }
            #expect(!describing.isEmpty, "\(code.rawValue)")
            // Some operation answers it, with its status.
            let names = describing.map { "#/components/responses/\($0.name)" }
            let isUsed = operations.contains { operation in
                operation.operation["responses"]?[String(code.status)]?["$ref"]?.text.map(names.contains) ?? false
            }
            #expect(isUsed, "\(code.rawValue) with \(code.status)")
        }
    }

    @Test func isAnOpenAPI31Document() throws {
        #expect(document["openapi"]?.text?.hasPrefix("3.1.") == true)
        for name in ["title", "version"] { #expect(document["info"]?[name]?.text?.isEmpty == false) }
        var ids: Set<String> = []
        let tags = Set((document["tags"]?.elements ?? []).compactMap { $0["name"]?.text })
        for (method, path, operation) in operations {
            let id = try #require(operation["operationId"]?.text)
            #expect(ids.insert(id).inserted, "\(id) comes twice")
            #expect(operation["summary"]?.text?.isEmpty == false)
            #expect(!(operation["responses"]?.names.isEmpty ?? true))
            #expect((operation["tags"]?.elements ?? []).allSatisfy { tags.contains($0.text ?? "") })
            for response in operation["responses"]?.members ?? [] {
                #expect(Int(response.name).map { (200...599).contains($0) } == true, "\(response.name)")
                #expect(resolved(response.value)?["description"]?.text?.isEmpty == false, "\(path) \(response.name)")
            }
            let parameters = try (operation["parameters"]?.elements ?? []).map { try #require(resolved($0)) }
            for parameter in parameters {
                #expect(parameter["name"]?.text != nil && parameter["schema"] != nil)
                #expect(["path", "query", "header", "cookie"].contains(parameter["in"]?.text ?? ""))
            }
            let placeholders = path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
                String($0.dropFirst().dropLast())
            }
            let named = parameters.filter { $0["in"]?.text == "path" }.compactMap { $0["name"]?.text }
            #expect(placeholders == named, "\(path)")
            // A face's delete may say where children go.
            let mayHaveBody = method == "delete" && !path.hasPrefix("/v1/")
            #expect((operation["requestBody"] != nil) == ["post", "put", "patch"].contains(method) || mayHaveBody)
        }
    }

    /// A body that does not arrive in time is answered by the server, whatever its route.
    @Test func everyOperationWithABodyDescribesThatItMayComeTooSlowly() {
        for (method, path, operation) in operations where operation["requestBody"] != nil {
            #expect(operation["responses"]?["408"] != nil, "\(method) \(path)")
        }
    }

    @Test func everyReferenceResolves() {
        var used: Set<String> = []
        for object in document.objects {
            guard let reference = object["$ref"]?.text else { continue }
            used.insert(reference)
            #expect(target(of: reference) != nil, "\(reference)")
        }
        for kind in ["schemas", "responses", "parameters"] {
            for name in document.at("components", kind)?.names ?? [] where !["Head"].contains(name) {
                #expect(used.contains("#/components/\(kind)/\(name)"), "\(name) is described for nothing")
            }
        }
    }

    @Test func declaresRequiredProperties() {
        for object in document.at("components", "schemas")?.objects ?? [] {
            guard let properties = object["properties"] else { continue }
            for name in object["required"]?.elements.compactMap(\.text) ?? [] {
                #expect(properties.names.contains(name), "\(name) is required and not described")
            }
        }
    }

    @Test func hasExamplesForEveryOperation() {
        for (method, path, operation) in operations where path.hasPrefix("/v1/") {
            if method == "post" || method == "patch" {
                let body = operation.at("requestBody", "content", "application/json")
                #expect(!(body?["examples"]?.members.isEmpty ?? true), "\(path)")
            }
            // What deletes answers without a body.
            if method == "delete" { continue }
            let content = operation.at("responses", "200", "content")?.members.first?.value
            #expect(content?["examples"] != nil || content?["example"] != nil, "\(path)")
        }
    }

    @Test func explainsEveryCodeUnderAHeadingOfItsOwn() {
        let codes =
            ProblemCode.allCases.map(\.rawValue) + BatchRefusal.allCases.map(\.rawValue)
            + RefusalCode.allCases.map(\.rawValue)
        let recordCodes = RecordRefusal.Code.allCases.map(\.rawValue)
        let headings = errors.split(separator: "\n").filter { $0.hasPrefix("### ") }.map { String($0.dropFirst(4)) }
        #expect(headings.sorted() == (codes + recordCodes).sorted())
        for code in codes {
            let section = section(code)
            #expect(section.contains("Client: "), "\(code) says what a client does")
        }
        for code in recordCodes { #expect(section(code).contains("Edge: "), "\(code) says what an edge does") }
        for code in ProblemCode.allCases {
            #expect(section(code.rawValue).hasPrefix("Status \(code.status)"), "\(code.rawValue)")
        }
    }

    @Test func theTypeOfAProblemRefersToItsHeading() throws {
        for code in ProblemCode.allCases {
            guard case .bytes(let body) = Problem(code, "x").response.content else { continue }
            let problem = try JSONTree(body)
            let type = try #require(problem["type"]?.text)
            let parts = type.split(separator: "#")
            #expect(GatewayRoutes.all.contains { $0.method == "get" && $0.path == String(parts[0]) })
            #expect(!section(String(parts[1])).isEmpty)
        }
    }

    /// The text under a heading.
    private func section(_ code: String) -> Substring {
        guard let heading = errors.firstRange(of: "### \(code)\n\n") else { return "" }
        let rest = errors[heading.upperBound...]
        return rest[..<(rest.firstRange(of: "\n#")?.lowerBound ?? rest.endIndex)]
    }

    private func resolved(_ value: JSONTree) -> JSONTree? {
        guard let reference = value["$ref"]?.text else { return value }
        return target(of: reference)
    }

    private func target(of reference: String) -> JSONTree? {
        guard reference.hasPrefix("#/") else { return nil }
        return reference.dropFirst(2).split(separator: "/").reduce(document as JSONTree?) { $0?[String($1)] }
    }
}
