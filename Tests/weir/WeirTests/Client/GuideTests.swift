import Foundation
import ProgramRun
import Testing

/// What README.md and the guides for apps show.
@Suite(.timeLimit(.minutes(5))) struct GuideTests {
    private static let documents = ["README.md", "docs/client.md", "docs/client-testing.md"]

    /// A file that ExampleTests or RecipesTests compile, by the name that a block gives it.
    private static func path(_ name: String) -> String? {
        let path = name.hasPrefix("docs/") ? name : "docs/client/" + name
        return ["docs/client/example/", "docs/client/recipes/"].contains(where: path.hasPrefix) ? path : nil
    }

    @Test(arguments: documents) func everyBlockOfSwiftShowsLinesOfAFileThatIsCompiled(document: String) throws {
        let blocks = try ClientGuide.blocks("swift", in: document)
        #expect(!blocks.isEmpty)
        for block in blocks {
            let path = try #require(block.file.flatMap(Self.path), "\(document): \(block.lines)")
            let known = Set(
                try ClientGuide.text(path).split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) })
            for line in block.lines.dropFirst() {
                #expect(known.contains(line.trimmingCharacters(in: .whitespaces)), "\(document), \(path): \(line)")
            }
        }
    }

    @Test func everyRecipeIsShown() throws {
        let shown = Set(
            try Self.documents.flatMap { try ClientGuide.blocks("swift", in: $0) }.compactMap {
                $0.file.flatMap(Self.path)
            })
        for name in try FileManager.default.contentsOfDirectory(
            atPath: ClientGuide.root.appending(path: "docs/client/recipes").path)
        {
            #expect(shown.contains("docs/client/recipes/\(name)"))
        }
    }

    /// The commands of a section, in a folder of their own, with the programs and the port of the tests.
    ///
    /// - Parameter end: the commands after them.
    private func play(
        _ heading: String, of document: String = "README.md", at address: String = "127.0.0.1:7777", port: UInt16,
        end: String = "", in folder: TestFolder
    ) async throws -> CommandRun {
        let blocks = try ClientGuide.blocks("sh", in: document, below: heading)
        #expect(!blocks.isEmpty, "\(heading)")
        let programs = try TestedProgram.weir.executable().deletingLastPathComponent().path
        // What a command leaves running ends with the script.
        let begin = "trap '[ -z \"$!\" ] || kill $! 2> /dev/null || true' EXIT"
        let commands = blocks.flatMap(\.lines).filter { !$0.hasPrefix("swift build ") }
        let script = ([begin] + commands + [end]).joined(separator: "\n")
            .replacing("/tmp/", with: folder.path + "/").replacing(address, with: "127.0.0.1:\(port)")
            .replacing(".build/release", with: programs)
            .replacing("deploy/schema.yaml", with: ClientGuide.root.appending(path: "deploy/schema.yaml").path)
            .replacing("docs/clients/", with: ClientGuide.root.appending(path: "docs/clients").path + "/")
        // The settings of the tests are none of the server's. The disk of the tests may be small.
        let settings = ProcessInfo.processInfo.environment.keys.filter { $0.hasPrefix("WEIR_") }.flatMap { ["-u", $0] }
        let run = try await CommandRun.tool(
            settings + ["WEIR_CHANGELOG_RESERVE_BYTES=0", "no_proxy=*", "sh", "-e", "-c", script], in: folder)
        #expect(run.code == 0, "\(heading): \(run.output)\(run.errors)")
        return run
    }

    /// A port that nothing listens on.
    private func freePort(in folder: TestFolder) async throws -> UInt16 {
        let program = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])"
        let run = try await CommandRun.tool(["python3", "-c", program], in: folder)
        return try #require(UInt16(run.output.trimmingCharacters(in: .whitespacesAndNewlines)))
    }

    @Test func theCommandsOfTheReadmeGiveWhatItShows() async throws {
        let folder = try TestFolder()
        let weir = try await WeirProcess.start(
            schema: ClientGuide.root.appending(path: "deploy/schema.yaml").path, in: folder,
            settings: ["clock": "sequence(1767225600000000)"])
        let exchange = "## Two devices exchange a change"
        let run = try await play(exchange, port: weir.port, in: folder)
        // Both answers, in which an ellipsis is what the section leaves out.
        let section = try ClientGuide.section(exchange, of: "README.md")
        let shown = section.split(separator: "\n").filter { $0.hasPrefix("    ") }
            .map { $0.trimmingCharacters(in: .whitespaces) }.joined()
        var rest = run.output.replacing("\n", with: "")[...]
        for part in shown.split(separator: "…") {
            let place = try #require(rest.range(of: part), "\(part): \(rest)")
            rest = rest[place.upperBound...]
        }
        let device = try await play("## A device in a terminal", port: weir.port, in: folder)
        #expect(device.output.contains("Ada") && device.output.contains("Grace"), "\(device.output)")
        #expect(await weir.stop() == 0)
    }

    @Test func theCommandsWithTokensOfTheReadmeRunAServerThatTwoDevicesUse() async throws {
        let folder = try TestFolder()
        let port = try await freePort(in: folder)
        // What the section says of a request without a token; then the server that it has started is stopped.
        let end = """
            curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:\(port)/v1/sync -d '{}'
            kill $!
            wait $!
            """
        let run = try await play("## With tokens", at: "127.0.0.1:7778", port: port, end: end, in: folder)
        let parts = [#""status":"applied""#, #""values":{"name":"Grace""#, "401"]
        var rest = run.output[...]
        for part in parts {
            let place = try #require(rest.range(of: part), "\(part): \(run.output)\(run.errors)")
            rest = rest[place.upperBound...]
        }
        #expect(rest.isEmpty)
    }

    @Test func theCommandsOfTheGuideForOtherLanguagesLetTwoDevicesExchangeARow() async throws {
        let folder = try TestFolder()
        let port = try await freePort(in: folder)
        let run = try await play("## To try it", of: "docs/clients.md", at: "127.0.0.1:7779", port: port, in: folder)
        #expect(run.output.contains("Ada"), "\(run.output)\(run.errors)")
    }
}
