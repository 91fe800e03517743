import Foundation
import HTTP
import Testing

@Suite(.timeLimit(.minutes(5))) struct HTTPSTests {
    /// Makes a certificate for localhost in a folder that is removed afterwards.
    private func withCertificate(_ test: (HTTPTLSFiles, URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer {
            do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) }
        }
        let files = HTTPTLSFiles(
            certificate: folder.appendingPathComponent("certificate.pem").path,
            key: folder.appendingPathComponent("key.pem").path)
        let made = try await Command.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost", "-keyout", files.key, "-out", files.certificate,
            ])
        #expect(made.status == 0)
        try await test(files, folder)
    }

    /// To the end, and with a response before it, after which the rest of the body is read and dropped.
    @Test func streamsBodiesWithTLS() async throws {
        try await withCertificate { files, folder in
            let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0) }
            let upload = folder.appendingPathComponent("upload")
            try Data(body).write(to: upload)
            let answer: @Sendable (HTTPRequest) -> HTTPHandlerResult = { request in
                .task {
                    var count = 0
                    if request.rawPath == "/early" { return text("early") }
                    do throws(HTTPBodyPieces.Failure) {
                        while let piece = try await request.bodyPieces?.next() { count += piece.count }
                    } catch { return text("\(error)") }
                    return text("\(count)")
                }
            }
            try await TestServer({ $0.tls = files }, bodyPolicy: { _ in .stream(upTo: 3_000_000) }, answer: answer).run
            {
                _, port in
                for (path, expected) in [("whole", "3000000"), ("early", "early")] {
                    let result = try await Command.run(
                        "curl",
                        [
                            "--silent", "--max-time", "20", "--cacert", files.certificate, "--resolve",
                            "localhost:\(port):127.0.0.1", "https://localhost:\(port)/\(path)", "-T", upload.path,
                        ])
                    #expect(result.status == 0)
                    #expect(result.output == expected)
                }
            }
        }
    }

    @Test func servesWithTLS() async throws {
        try await withCertificate { files, folder in
            let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
            let upload = folder.appendingPathComponent("upload")
            try Data(body).write(to: upload)
            try await TestServer(
                {
                    $0.tls = files
                    $0.maxBodyBytes = 1 << 20
                },
                answer: { request in
                    switch request.segments.first {
                    case "task": .task { text("from a task") }
                    case "stream":
                        .task {
                            let stream = HTTPBodyStream()
                            stream.write(Array("one ".utf8))
                            Task {
                                for word in ["two ", "three"] { _ = await stream.send(Array(word.utf8)) }
                                stream.finish()
                            }
                            return HTTPResponse(status: 200, stream: stream)
                        }
                    case "large":
                        .response(
                            HTTPResponse(
                                status: 200, body: [UInt8](repeating: 97, count: 300_000), isCompressible: true))
                    default: .response(text("\(request.body.count)"))
                    }
                }
            ).run { _, port in
                func curl(_ path: String, _ more: [String] = []) async throws -> String {
                    let result = try await Command.run(
                        "curl",
                        [
                            "--silent", "--max-time", "20", "--cacert", files.certificate, "--resolve",
                            "localhost:\(port):127.0.0.1", "https://localhost:\(port)/\(path)",
                        ] + more)
                    #expect(result.status == 0)
                    return result.output
                }
                let chunked = ["-H", "Transfer-Encoding: chunked"]
                let file = ["--data-binary", "@" + upload.path]
                for (path, options, expected) in [
                    ("upload", file, "200000"), ("upload", chunked + file, "200000"),
                    ("task", ["https://localhost:\(port)/task"], "from a taskfrom a task"),
                    ("stream", [], "one two three"),
                    ("large", ["--compressed"], String(repeating: "a", count: 300_000)),
                ] {
                    let output = try await curl(path, options)
                    #expect(output == expected)
                }
            }
        }
    }

    @Test func limitsBodiesAndTimeWithTLS() async throws {
        try await withCertificate { files, folder in
            let upload = folder.appendingPathComponent("upload")
            try Data(count: 300_000).write(to: upload)
            try await TestServer(
                {
                    $0.tls = files
                    $0.maxBodyBytes = 1000
                    $0.requestTimeout = .milliseconds(1500)
                }, answer: echo
            ).run { _, port in
                for framing in ["Content-Length: 300000", "Transfer-Encoding: chunked"] {
                    let result = try await Command.run(
                        "curl",
                        [
                            "--silent", "--max-time", "20", "--insecure", "--output", "/dev/null", "--write-out",
                            "%{http_code}", "-H", "Expect: 100-continue", "-H", framing, "--data-binary",
                            "@" + upload.path, "https://127.0.0.1:\(port)/",
                        ])
                    #expect(result.output == "413")
                }
                let silent = try await RawClient(port: port)
                try await silent.send([22, 3, 1])
                _ = try await silent.rest()
            }
        }
    }

    @Test func reportsAnUnusableCertificate() async throws {
        try await withCertificate { files, folder in
            let nonsense = folder.appendingPathComponent("nonsense.pem")
            try Data("no certificate".utf8).write(to: nonsense)
            let other = folder.appendingPathComponent("other.pem").path
            let made = try await Command.run("openssl", ["genrsa", "-out", other, "2048"])
            #expect(made.status == 0)
            for bad in [
                HTTPTLSFiles(certificate: nonsense.path, key: files.key),
                HTTPTLSFiles(certificate: files.certificate, key: nonsense.path),
                HTTPTLSFiles(certificate: files.certificate, key: other),
            ] {
                var configuration = HTTPServerConfiguration()
                configuration.tls = bad
                let server = HTTPServer(configuration: configuration, handler: ClosureHandler(answer: echo))
                let failure = #expect(throws: HTTPServerError.self) { try server.start() }
                guard case .unusableCertificate(_, _, let reason)? = failure else {
                    Issue.record("\(String(describing: failure))")
                    continue
                }
                #expect(!reason.isEmpty)
            }
        }
    }
}
