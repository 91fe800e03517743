import Foundation
import Glibc
import Testing

@testable import HTTP

/// A server reads its certificate again while it runs.
@Suite(.timeLimit(.minutes(5))) struct CertificateTests {
    /// Certificates for localhost in a folder of its own.
    private final class Certificates {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let files: HTTPTLSFiles

        init() throws {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            files = HTTPTLSFiles(
                certificate: folder.appendingPathComponent("certificate.pem").path,
                key: folder.appendingPathComponent("key.pem").path)
        }

        deinit {
            do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) }
        }

        func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

        /// Makes `NAME.pem` and `NAME-key.pem`.
        func make(_ name: String) async throws {
            let made = try await Command.run(
                "openssl",
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=\(name)", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                    path("\(name)-key.pem"), "-out", path("\(name).pem"),
                ])
            #expect(made.status == 0)
        }

        /// Replaces the server's files; `nil` leaves one as it is.
        func install(certificate: String?, key: String?) throws {
            for (source, target) in [(certificate, files.certificate), (key, files.key)] {
                guard let source else { continue }
                try Data(contentsOf: URL(filePath: path(source))).write(to: URL(filePath: target), options: .atomic)
            }
        }

        func install(_ name: String) throws { try install(certificate: "\(name).pem", key: "\(name)-key.pem") }
    }

    private func isServed(_ port: UInt16, trusting certificate: String) async throws -> Bool {
        try await Command.run(
            "curl",
            [
                "--silent", "--fail", "--max-time", "20", "--cacert", certificate, "--resolve",
                "localhost:\(port):127.0.0.1", "https://localhost:\(port)/",
            ]
        ).status == 0
    }

    /// The server's reports about its certificate, as texts.
    private func withServer(
        _ certificates: Certificates, every interval: Duration = .seconds(3600),
        _ test: (HTTPServer, UInt16, inout AsyncStream<String>.Iterator) async throws -> Void
    ) async throws {
        let events = AsyncStream.makeStream(of: String.self)
        try await TestServer(
            {
                $0.tls = certificates.files
                $0.certificateInterval = interval
                $0.onEvent = { event in
                    switch event {
                    case .certificateLoaded(_, let expires): events.continuation.yield("loaded until \(expires)")
                    case .certificateUnusable(let reason): events.continuation.yield("unusable: \(reason)")
                    default: break
                    }
                }
            }, answer: { request in .response(text("answer to \(request.rawPath)")) }
        ).run { server, port in
            var iterator = events.stream.makeAsyncIterator()
            try await test(server, port, &iterator)
        }
    }

    @Test func newConnectionsGetAChangedCertificateAndOthersContinue() async throws {
        let certificates = try Certificates()
        for name in ["old", "new"] { try await certificates.make(name) }
        try certificates.install("old")
        try await withServer(certificates) { server, port, events in
            let early = try TLSClient(port: port, trusting: certificates.path("old.pem"))
            #expect(await early.get("/before", until: "answer to /before"))
            try certificates.install("new")
            server.checkCertificate()
            let event = try #require(await events.next())
            #expect(event.contains(/^loaded until 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/), "\(event)")
            #expect(try await isServed(port, trusting: certificates.path("new.pem")))
            #expect(try await !isServed(port, trusting: certificates.path("old.pem")))
            #expect(await early.get("/after", until: "answer to /after"))
            #expect(server.counters.certificateLoads == 1)
            #expect(server.counters.certificateFailures == 0)
            #expect(try #require(server.counters.certificateExpiration) > time(nil))
        }
    }

    @Test func aCertificateThatCannotBeUsedLeavesThePreviousOne() async throws {
        let certificates = try Certificates()
        for name in ["old", "new"] { try await certificates.make(name) }
        try Data("no certificate".utf8).write(to: URL(filePath: certificates.path("nonsense")))
        try certificates.install("old")
        try await withServer(certificates) { server, port, events in
            let cases: [(certificate: String?, key: String?)] = [
                ("nonsense", nil), ("old.pem", "nonsense"), ("new.pem", "old-key.pem"),
            ]
            for (index, (certificate, key)) in cases.enumerated() {
                try certificates.install(certificate: certificate, key: key)
                server.checkCertificate()
                let event = try #require(await events.next())
                #expect(event.hasPrefix("unusable: the certificate \(certificates.files.certificate)"), "\(event)")
                #expect(server.counters.certificateFailures == index + 1)
                #expect(try await isServed(port, trusting: certificates.path("old.pem")))
            }
            try FileManager.default.removeItem(atPath: certificates.files.key)
            server.checkCertificate()
            #expect(try #require(await events.next()).hasPrefix("unusable: cannot read "))
            #expect(try await isServed(port, trusting: certificates.path("old.pem")))
            // The same problem is reported once: the next report is about another change.
            server.checkCertificate()
            try certificates.install("new")
            server.checkCertificate()
            #expect(try #require(await events.next()).hasPrefix("loaded"))
            #expect(server.counters.certificateFailures == 4)
            #expect(server.counters.certificateLoads == 1)
            #expect(try await isServed(port, trusting: certificates.path("new.pem")))
        }
    }

    @Test func changesAreFoundWithoutBeingAskedFor() async throws {
        let certificates = try Certificates()
        for name in ["old", "new"] { try await certificates.make(name) }
        try certificates.install("old")
        try await withServer(certificates, every: .milliseconds(5)) { server, port, events in
            try certificates.install(certificate: nil, key: "new-key.pem")
            #expect(try #require(await events.next()).hasPrefix("unusable"))
            try certificates.install(certificate: "new.pem", key: nil)
            #expect(try #require(await events.next()).hasPrefix("loaded"))
            #expect(try await isServed(port, trusting: certificates.path("new.pem")))
        }
    }

    @Test func anExpiredCertificateDoesNotReplaceAnother() async throws {
        let certificates = try Certificates()
        for name in ["old", "new"] { try await certificates.make(name) }
        try certificates.install("old")
        let certificate = try TLSCertificate(certificates.files)
        let first = certificate.credentials
        try certificates.install("new")
        guard case .certificateUnusable(let reason)? = certificate.reload(now: time(nil) + 3 * 86_400) else {
            Issue.record("it was accepted")
            return
        }
        #expect(reason.contains("has expired"))
        #expect(certificate.credentials === first)
        // Its clock is ahead, or it was installed too early.
        try certificates.install("old")
        #expect(certificate.reload() == nil)
        try certificates.install("new")
        guard case .certificateUnusable(let early)? = certificate.reload(now: time(nil) - 86_400) else {
            Issue.record("it was accepted")
            return
        }
        #expect(early.contains("is valid from"))
        #expect(certificate.credentials === first)
        // Back to what is served already: nothing to report.
        try certificates.install("old")
        #expect(certificate.reload() == nil)
        try certificates.install("new")
        #expect(certificate.reload() != nil)
        #expect(certificate.credentials !== first)
    }
}
