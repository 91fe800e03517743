import Foundation
import ProgramRun
import Testing

/// The recipes of docs/client/recipes, compiled with stand-ins of the libraries that they use.
@Suite(.timeLimit(.minutes(5))) struct RecipesTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func compile(_ options: String...) async throws {
        let common = ["swiftc", "-parse-as-library", "-swift-version", "6", "-warnings-as-errors"]
        let run = try await CommandRun.tool(common + options, in: folder)
        try #require(run.code == 0, "\(run.errors)")
    }

    @Test(arguments: [("GRDB", "GRDB"), ("SQLiteSwift", "SQLite"), ("SwiftUI", "SwiftUI")])
    func aRecipeCompiles(recipe: String, library: String) async throws {
        let standIn = Self.root.appending(path: "Tests/weir/WeirTests/Client/StandIns/\(library).swift").path
        try await compile(
            "-emit-module", "-module-name", library, "-o", "\(folder.path)/\(library).swiftmodule", standIn)
        // As the tests were built with them.
        let modules = try TestedProgram.weir.executable().deletingLastPathComponent().appending(path: "Modules").path
        let sqlite = Self.root.appending(path: "Sources/CLibraries/CWeirSQLite").path
        try await compile(
            "-typecheck", "-module-name", "App", "-I", folder.path, "-I", modules, "-I", sqlite,
            Self.root.appending(path: "docs/client/recipes/\(recipe).swift").path)
    }

    /// The guide shows lines of the recipes.
    @Test(arguments: ["GRDB", "SQLiteSwift", "SwiftUI"]) func theGuideShowsTheRecipe(recipe: String) throws {
        func text(_ path: String) throws -> String {
            try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
        }
        let known = Set(
            try text("docs/client/recipes/\(recipe).swift").split(separator: "\n")
                .map { $0.trimmingCharacters(in: .whitespaces) })
        let blocks = try text("docs/client.md").components(separatedBy: "```swift\n// recipes/\(recipe).swift\n")
            .dropFirst()
        #expect(!blocks.isEmpty)
        for block in blocks {
            for line in (block.components(separatedBy: "```").first ?? "").split(separator: "\n") {
                #expect(known.contains(line.trimmingCharacters(in: .whitespaces)), "\(line)")
            }
        }
    }
}
