import HTTP
import HTTPDownload
import TestAuthority
import TestResources
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(2))) struct DownloadTests {
    /// Downloads from an authority whose answer is given.
    private func download(
        _ answer: TestAuthority.Answer, limits: DownloadLimits = DownloadLimits(),
        _ test: (Result<DownloadedDocument, DownloadError>, TestAuthority) throws -> Void
    ) async throws {
        let authority = try TestAuthority()
        authority.respond(answer)
        let downloader = try HTTPDownloader(limits: limits)
        let url = try #require(DownloadURL(authority.url))
        let result: Result<DownloadedDocument, DownloadError>
        do throws(DownloadError) {
            result = .success(try await downloader.download(url))
        } catch {
            result = .failure(error)
        }
        await downloader.close()
        await authority.stop()
        try test(result, authority)
    }

    @Test func downloadsADocumentWithWhatItSaysOfItsAge() async throws {
        let headers = [("Cache-Control", "public, max-age=60"), ("cache-control", "must-revalidate"), ("Age", "7")]
        try await download(.init(body: Array("keys".utf8), headers: headers)) { result, _ in
            let document = try result.get()
            #expect(document.body == Array("keys".utf8))
            #expect(document.cacheControl == ["public, max-age=60", "must-revalidate"])
            #expect(document.age == 7)
        }
    }

    @Test(arguments: [204, 304, 400, 401, 404, 429, 500, 503])
    func failsForOtherStatusesThan200(status: Int) async throws {
        try await download(.init(status: status, body: [])) { result, _ in
            #expect { try result.get() } throws: { "\($0)".contains("\(status)") }
        }
    }

    @Test(arguments: [(1000, true), (1001, false), (1_000_000, false)])
    func failsForADocumentThatIsTooLarge(size: Int, succeeds: Bool) async throws {
        var limits = DownloadLimits()
        limits.maximumBytes = 1000
        try await download(.init(body: Array(repeating: 0x20, count: size)), limits: limits) { result, _ in
            if succeeds {
                let document = try result.get()
                #expect(document.body.count == size)
            } else {
                #expect { try result.get() } throws: { "\($0)".contains("more than 1000 bytes") }
            }
        }
    }

    @Test(arguments: [
        "http://example.com/keys", "file:///etc/passwd", "/other", "https://127.0.0.1:1/", "gopher://127.0.0.1:1/",
    ])
    func followsNoRedirectFromPlainHTTP(location: String) async throws {
        try await download(.init(status: 302, headers: [("Location", location)])) { result, authority in
            #expect { try result.get() } throws: { "\($0)".contains("302") }
            #expect(authority.requestCount == 1)
        }
    }

    /// Runs an authority with TLS, and downloads from it with and without trust in its certificate.
    private func withTLS(_ test: (TestAuthority, _ trusting: String) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try folder.write(Array(LocalhostCertificate.pem.utf8), to: "certificate.pem")
        try folder.write(Array(LocalhostCertificate.privateKey.utf8), to: "key.pem")
        let authority = try TestAuthority(
            tls: HTTPTLSFiles(certificate: folder.file("certificate.pem"), key: folder.file("key.pem")))
        do {
            try await test(authority, folder.file("certificate.pem"))
        } catch {
            Issue.record(error)
        }
        await authority.stop()
    }

    @Test func trustsTheCertificatesOfTheFileAlone() async throws {
        try await withTLS { authority, certificate in
            authority.respond(.init(body: Array("keys".utf8)))
            let url = try #require(DownloadURL(authority.url))
            let trusting = try HTTPDownloader(authorities: certificate)
            #expect(try await trusting.download(url).body == Array("keys".utf8))
            let other = try #require(DownloadURL(authority.url.replacing("localhost", with: "127.0.0.2")))
            await #expect(throws: DownloadError.self) { try await trusting.download(other) }
            await trusting.close()
            let usual = try HTTPDownloader()
            await #expect { try await usual.download(url) } throws: { "\($0)".contains("certificate") }
            await usual.close()
        }
    }

    @Test func followsRedirectsFromHTTPSToHTTPSOnly() async throws {
        try await withTLS { authority, certificate in
            let plain = try TestAuthority()
            plain.respond(.init(body: Array("plain".utf8)))
            let url = try #require(DownloadURL(authority.url))
            let downloader = try HTTPDownloader(authorities: certificate)
            authority.respond(.init(status: 302, headers: [("Location", plain.url)]))
            await #expect(throws: DownloadError.self) { try await downloader.download(url) }
            #expect(plain.requestCount == 0)
            authority.respond(.init(status: 302, headers: [("Location", authority.url)]))
            let before = authority.requestCount
            await #expect(throws: DownloadError.self) { try await downloader.download(url) }
            // The first request, and three redirects.
            #expect(authority.requestCount == before + 4)
            await downloader.close()
            await plain.stop()
        }
    }

    @Test func failsWhereTheServerTakesTooLong() async throws {
        let authority = try TestAuthority()
        authority.hold()
        var limits = DownloadLimits()
        limits.time = .milliseconds(50)
        let downloader = try HTTPDownloader(limits: limits)
        let url = try #require(DownloadURL(authority.url))
        await #expect(throws: DownloadError.self) { try await downloader.download(url) }
        await downloader.close()
        await authority.stop()
    }

    @Test func failsWhereNobodyListens() async throws {
        let authority = try TestAuthority()
        let url = try #require(DownloadURL(authority.url))
        await authority.stop()
        let downloader = try HTTPDownloader()
        await #expect(throws: DownloadError.self) { try await downloader.download(url) }
        await downloader.close()
    }

    @Test func aCancelledTaskEndsItsDownload() async throws {
        let authority = try TestAuthority()
        authority.hold()
        let downloader = try HTTPDownloader(limits: DownloadLimits())
        let url = try #require(DownloadURL(authority.url))
        let download = Task { try await downloader.download(url) }
        await authority.requests.next()
        download.cancel()
        await #expect(throws: DownloadError.self) { try await download.value }
        await downloader.close()
        await authority.stop()
    }

    @Test(arguments: [
        ("https://issuer.example/keys", true), ("https://127.0.0.1/", true), ("HTTPS://issuer.example", true),
        ("http://127.0.0.1:8080/keys", true), ("http://localhost/keys", true), ("http://[::1]:1/", true),
        ("http://issuer.example/keys", false), ("http://127.0.0.1.example/", false),
        ("http://localhost.example/", false),
        ("ftp://127.0.0.1/", false), ("file:///etc/passwd", false), ("issuer.example", false), ("", false),
        ("https://user:secret@issuer.example/", false), ("https://user@issuer.example/", false),
        ("https://issuer.example/#keys", false), ("//issuer.example/", false), ("https://", false),
        ("http://128.0.0.1/", false), ("http://0.0.0.0/", false), ("https://issuer example/", false),
    ])
    func allowsHTTPSAndLoopback(url: String, isAllowed: Bool) {
        #expect((DownloadURL(url) != nil) == isAllowed)
    }
}
