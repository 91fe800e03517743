import Gateway
import HTTP
import Testing

/// The demo page as files; `WeirTests` uses it in a browser.
@Suite(.timeLimit(.minutes(5))) struct DemoPageTests {
    private static let folder = "Sources/Pipeline/Gateway/Demo"
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml",
        "js": "text/javascript; charset=utf-8",
    ]

    /// The paths that the page and its scripts name, from the page on.
    private static func paths() throws -> Set<String> {
        let page = try Repository.text("\(folder)/page.html")
        var paths: Set = ["/demo"]
        var unread = page.matches(of: /(?:src|href)="demo\/([a-z.]+)"/).map { String($0.1) }
        while let name = unread.popLast() {
            guard paths.insert("/demo/\(name)").inserted, name.hasSuffix(".js") else { continue }
            unread += try Repository.text("\(folder)/\(name)").matches(of: /from "\.\/([a-z.]+)"/).map { String($0.1) }
        }
        return paths
    }

    private static func file(_ path: String) -> String {
        path == "/demo" ? "page.html" : String(path.dropFirst("/demo/".count))
    }

    @Test func everyFileThatThePageNamesIsServedWithoutACaller() async throws {
        let paths = try Self.paths()
        #expect(paths.count == 13)
        try await withGateway { gateway in
            for path in paths {
                let answer = try await gateway.exchange("GET", path, as: nil)
                #expect(answer.status == 200, "\(path)")
                let file = Self.file(path)
                #expect(try answer.body == Repository.bytes("\(Self.folder)/\(file)"), "\(path)")
                #expect(answer["content-type"] == Self.types[String(file.split(separator: ".").last!)], "\(path)")
            }
        }
    }

    @Test func aBrowserRunsNothingButTheFilesAndSendsRequestsToTheGatewayAlone() async throws {
        try await withGateway { gateway in
            for path in try Self.paths() {
                let answer = try await gateway.exchange("GET", path, headers: ["Origin: https://evil.example"])
                let policy = try #require(answer["content-security-policy"]).split(separator: ";")
                    .map { $0.split(separator: " ").map(String.init) }
                let sources = Dictionary(uniqueKeysWithValues: policy.map { ($0[0], Array($0.dropFirst())) })
                #expect(sources["default-src"] == ["'none'"])
                for kind in ["script-src", "style-src", "img-src", "connect-src"] {
                    #expect(sources[kind] == ["'self'"], "\(kind)")
                }
                for kind in ["base-uri", "form-action", "frame-ancestors"] {
                    #expect(sources[kind] == ["'none'"], "\(kind)")
                }
                #expect(sources["require-trusted-types-for"] == ["'script'"])
                #expect(answer["x-content-type-options"] == "nosniff")
                #expect(answer["referrer-policy"] == "no-referrer")
                #expect(answer["cross-origin-resource-policy"] == "same-origin")
                #expect(answer["access-control-allow-origin"] == nil)
            }
        }
        let page = try Repository.text("\(Self.folder)/page.html")
        #expect(page.matches(of: /<script(?! type="module" src="demo\/)/).isEmpty)
        #expect(page.matches(of: /<style|\sstyle=|\son[a-z]+=/).isEmpty)
    }

    @Test func anUnchangedFileIsNotSentAgain() async throws {
        try await withGateway { gateway in
            var tags: Set<String> = []
            for path in try Self.paths() {
                let head = try await gateway.exchange("HEAD", path, as: nil)
                #expect(head.status == 200)
                #expect(head["cache-control"] == "no-cache")
                let tag = try #require(head["etag"])
                tags.insert(tag)
                let known = try await gateway.exchange("GET", path, as: nil, headers: ["If-None-Match: \(tag)"])
                #expect(known.status == 304 && known.body.isEmpty)
                #expect(known["etag"] == tag)
                let other = try await gateway.exchange("GET", path, as: nil, headers: ["If-None-Match: W/\"x\""])
                #expect(other.status == 200)
            }
            #expect(try tags.count == Self.paths().count)
        }
    }

    @Test func otherMethodsAndPathsAreRefused() async throws {
        try await withGateway { gateway in
            for path in ["/demo", "/demo/page.js"] {
                for method in ["POST", "PUT", "DELETE", "PATCH"] {
                    let answer = try await gateway.exchange(method, path, "{}")
                    #expect(answer.status == 405, "\(method) \(path)")
                    #expect(answer["allow"] == "GET, HEAD, OPTIONS")
                }
                let options = try await gateway.exchange("OPTIONS", path, as: nil)
                #expect(options.status == 204)
                #expect(options["allow"] == "GET, HEAD, OPTIONS")
            }
            for path in [
                "/demo/", "/Demo", "/demo/page.html", "/demo/none.js", "/demo/page.js/", "/demo/../demo/page.js",
                "/demo/DemoPage.swift",
            ] {
                #expect(try await gateway.exchange("GET", path).status == 404, "\(path)")
            }
            let large = try await gateway.exchange("GET", "/demo", String(repeating: " ", count: 4097))
            #expect(large.status == 413)
            let foreign = try await gateway.exchange("GET", "/demo", headers: ["Host: attacker.example"])
            #expect(foreign.status == 403)
        }
    }

    @Test(
        arguments: [
            (true, nil, true), (true, false, false), (true, true, true), (false, nil, false), (false, true, true),
            (false, false, false),
        ] as [(Bool, Bool?, Bool)])
    func isServedWithoutAuthenticationAndElsewhereIfTheSettingSaysSo(
        trustsEveryCaller: Bool, setting: Bool?, isServed: Bool
    ) async throws {
        try await withGateway {
            $0.authentication.believesHeaders = trustsEveryCaller
            $0.configuration.demo = setting
        } test: { gateway in
            for path in ["/demo", "/demo/page.js"] {
                let answer = try await gateway.exchange("GET", path, as: nil)
                #expect(answer.status == (isServed ? 200 : 404), "\(path)")
            }
            let post = try await gateway.exchange("POST", "/demo", as: nil, "{}")
            #expect(post.status == (isServed ? 405 : 404))
        }
    }
}
