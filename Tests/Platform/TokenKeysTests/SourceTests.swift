import Glibc
import HTTPDownload
import TestAuthority
import TestResources
import Testing
import TokenKeys
import WebTokens

/// Keys at URLs and in files.
@Suite(.timeLimit(.minutes(2))) struct SourceTests {
    private let key = SigningKey.ed("a")

    private func withAuthority(
        _ answer: TestAuthority.Answer, limits: DownloadLimits = DownloadLimits(),
        _ test: (WebKeySource) async throws -> Void
    ) async throws {
        let authority = try TestAuthority()
        authority.respond(answer)
        let source = try WebKeySource(try #require(DownloadURL(authority.url)), .jwks, limits: limits)
        do {
            try await test(source)
        } catch {
            Issue.record(error)
        }
        await source.close()
        await authority.stop()
    }

    @Test(
        arguments: [
            ([], nil), (["max-age=300"], 300), (["public, max-age=19003, must-revalidate, no-transform"], 19003),
            (["MAX-AGE=5"], 5), (["max-age=\"60\""], 60), (["max-age = 60"], 60), (["s-maxage=7"], nil),
            (["no-cache"], 0),
            (["no-store, max-age=60"], 0), (["max-age=60", "no-store"], 0), (["max-age=x"], 0), (["max-age=-1"], 0),
            (["max-age"], nil), (["max-age=99999999999999999999"], Int.max), (["max-age=60, max-age=30"], 30),
        ] as [([String], Int?)])
    func readsHowLongKeysMayBeKept(headers: [String], expected: Int?) async throws {
        let answer = TestAuthority.Answer(
            body: SigningKey.jwks([key]), headers: headers.map { ("Cache-Control", $0) } + [("Age", "0")])
        try await withAuthority(answer) { source in
            let published = try await source.keys()
            #expect(published.maximumAge == expected.map { .seconds($0) })
            #expect(published.set.keys.map(\.id) == ["a"])
        }
    }

    @Test func subtractsTheAge() async throws {
        for (age, expected) in [("100", 200), ("1000", 0), ("-5", 300), ("x", 300)] {
            let headers = [("Cache-Control", "max-age=300"), ("Age", age)]
            try await withAuthority(.init(body: SigningKey.jwks([key]), headers: headers)) { source in
                let published = try await source.keys()
                #expect(published.maximumAge == .seconds(expected))
            }
        }
    }

    @Test(arguments: [
        TestAuthority.Answer(body: Array("<html>".utf8)), .init(body: []), .init(status: 500),
        .init(status: 301, headers: [("Location", "/keys")]), .init(body: Array(repeating: 0x5B, count: 100_000)),
        .init(body: Array(repeating: 0x20, count: 2 << 20)), .init(body: Array(#"{"keys":1}"#.utf8)),
    ])
    func failsForWhatIsNoSet(answer: TestAuthority.Answer) async throws {
        try await withAuthority(answer) { source in
            await #expect(throws: (any Error).self) { try await source.keys() }
        }
    }

    @Test func readsAFileAgain() async throws {
        let folder = try TemporaryFolder()
        try folder.write(SigningKey.jwks([key]), to: "keys.json")
        let source = try FileKeySource(folder.file("keys.json"), .jwks)
        #expect(try await source.keys().set.keys.map(\.id) == ["a"])
        try folder.write(SigningKey.jwks([key, .ed("b")]), to: "keys.json")
        #expect(try await source.keys().set.keys.map(\.id) == ["a", "b"])
        try folder.write(Array("{".utf8), to: "keys.json")
        await #expect(throws: KeySetError.self) { try await source.keys() }
        try folder.write(Array(repeating: 0x20, count: 2 << 20), to: "keys.json")
        await #expect { try await source.keys() } throws: { "\($0)".contains("more than") }
        await source.close()
        // Opening it would wait for a writer.
        #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
        let pipe = try FileKeySource(folder.file("pipe"), .jwks)
        await #expect { try await pipe.keys() } throws: { "\($0)".contains("no regular file") }
        await pipe.close()
        let absent = try FileKeySource(folder.file("absent"), .jwks)
        await #expect { try await absent.keys() } throws: { "\($0)".contains("No such file") }
        await absent.close()
    }
}
