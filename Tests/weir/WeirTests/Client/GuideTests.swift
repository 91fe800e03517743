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
    private func play(_ heading: String, port: UInt16, in folder: TestFolder) async throws -> CommandRun {
        let blocks = try ClientGuide.blocks("sh", in: "README.md", below: heading)
        #expect(!blocks.isEmpty, "\(heading)")
        let script = try blocks.flatMap(\.lines).filter { !$0.hasPrefix("swift build ") }.joined(separator: "\n")
            .replacing("127.0.0.1:7777", with: "127.0.0.1:\(port)")
            .replacing(".build/release/weir-device", with: TestedProgram.device.executable().path)
        let run = try await CommandRun.tool(["no_proxy=*", "sh", "-e", "-c", script], in: folder)
        #expect(run.code == 0, "\(heading): \(run.output)\(run.errors)")
        return run
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
}
