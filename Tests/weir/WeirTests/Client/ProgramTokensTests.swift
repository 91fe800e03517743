import Foundation
import ProgramRun
import Testing

/// `weir-device` and `weir-demo` at a server that asks for tokens.
@Suite(.timeLimit(.minutes(5))) struct ProgramTokensTests {
    private let folder: TestFolder

    init() throws {
        folder = try TestFolder()
        try folder.write(String(repeating: "s", count: 32), to: "secret")
        try folder.write("tables: { list: { columns: { title: { type: text, nullable: false } } } }", to: "schema.yaml")
    }

    private func start() async throws -> WeirProcess {
        try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder,
            settings: ["auth": "jwt", "auth.secret-file": folder.path + "/secret"])
    }

    /// Writes a token of an account into the file that the programs read.
    private func logIn(_ account: String, _ options: String...) async throws {
        let token = try await CommandRun.run(
            ["token", "create", account, "--auth.secret-file", "secret"] + options, in: folder)
        #expect(token.code == 0, "\(token.errors)")
        try folder.write(token.output, to: "token")
    }

    private func device(_ arguments: String..., file: String = "phone.sqlite") async throws -> CommandRun {
        try await CommandRun.run(arguments + ["--file", file, "--token-file", "token"], of: .device, in: folder)
    }

    @Test func aDeviceWaitsForATokenThatTheServerAccepts() async throws {
        let weir = try await start()
        let url = "http://127.0.0.1:\(weir.port)"
        try await logIn("ada")
        #expect(try await device("put", "list", "l1", "title=Home", "--server", url).code == 0)
        #expect(try await device("sync").code == 0)
        #expect(try await device("edit", "list", "l1", "title=House").code == 0)
        try folder.write("no token", to: "token")
        let refused = try await device("sync")
        #expect(refused.code == 1)
        #expect(refused.errors.contains("1 row is pending"), "\(refused.errors)")
        let status = try await device("status")
        #expect(status.output.contains("list l1"), "\(status.output)")
        // Nor is anything sent for another account.
        try await logIn("grace")
        let other = try await device("sync")
        #expect(other.code == 1)
        #expect(other.errors.contains("another account"), "\(other.errors)")
        // One that may only read receives.
        try await logIn("ada", "--scope", "read")
        let reader = try await device("sync")
        #expect(reader.code == 1)
        #expect(reader.errors.contains("1 row is pending"), "\(reader.errors)")
        try await logIn("ada")
        let sync = try await device("sync")
        #expect(sync.code == 0 && sync.output.contains("Nothing is pending"), "\(sync.output)\(sync.errors)")
        #expect(try await device("sync", "--server", url, file: "tablet.sqlite").code == 0)
        #expect(try await device("list", "list", file: "tablet.sqlite").output.contains("House"))
        #expect(await weir.stop() == 0)
    }

    @Test func aTokenIsGivenAsAnOptionOrInTheEnvironment() async throws {
        let weir = try await start()
        try await logIn("ada")
        let token = try String(contentsOfFile: folder.path + "/token", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        func run(_ arguments: [String], _ environment: [String: String] = [:]) async throws -> CommandRun {
            try await CommandRun.run(
                arguments + ["--file", "phone.sqlite"], of: .device, in: folder, environment: environment)
        }
        let url = "http://127.0.0.1:\(weir.port)"
        let put = try await run(["put", "list", "l1", "title=Home", "--server", url, "--token", token])
        #expect(put.code == 0, "\(put.errors)")
        // The file remembers neither.
        let without = try await run(["sync"])
        #expect(without.code == 1, "\(without.output)")
        #expect(without.errors.contains("--token-file"), "\(without.errors)")
        let wrong = try await run(["sync", "--token", "no token"], ["SYNC_TOKEN": token])
        #expect(wrong.code == 1, "\(wrong.output)")
        let sync = try await run(["sync"], ["SYNC_TOKEN": token])
        #expect(sync.code == 0 && sync.output.contains("Nothing is pending"), "\(sync.output)\(sync.errors)")
        #expect(await weir.stop() == 0)
    }

    @Test func theDemonstrationRunsWithATokenAndSaysIfItIsRefused() async throws {
        let weir = try await start()
        let arguments = [
            "--server", "http://127.0.0.1:\(weir.port)", "--token-file", "token", "--devices", "2", "--seconds", "1",
        ]
        try folder.write("no token", to: "token")
        let refused = try await CommandRun.run(arguments, of: .demo, in: folder)
        #expect(refused.code == 1)
        #expect(refused.errors.contains("token"), "\(refused.errors)")
        try await logIn("ada")
        let demo = try await CommandRun.run(arguments, of: .demo, in: folder)
        #expect(demo.code == 0 && demo.output.hasPrefix("Equal: 2 devices"), "\(demo.output)\(demo.errors)")
        #expect(await weir.stop() == 0)
    }
}
