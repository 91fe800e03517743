import Foundation
import ProgramRun
import Testing

/// The recipes of docs/client/recipes, compiled with stand-ins of the libraries that they use.
@Suite(.timeLimit(.minutes(5))) struct RecipesTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func compile(_ options: String...) async throws {
        let common = ["swiftc", "-parse-as-library", "-swift-version", "6", "-warnings-as-errors"]
        let run = try await CommandRun.tool(common + options, in: folder)
        try #require(run.code == 0, "\(run.errors)")
    }

    /// With a stand-in of the library that it uses, if it is not WeirClient alone.
    @Test(arguments: [("GRDB", "GRDB"), ("SQLiteSwift", "SQLite"), ("SwiftUI", "SwiftUI"), ("TaskLists", nil)])
    func aRecipeCompiles(recipe: String, library: String?) async throws {
        if let library {
            try await compile(
                "-emit-module", "-module-name", library, "-o", "\(folder.path)/\(library).swiftmodule",
                ClientGuide.root.appending(path: "Tests/weir/WeirTests/Client/StandIns/\(library).swift").path)
        }
        // As the tests were built with them.
        let modules = try TestedProgram.weir.executable().deletingLastPathComponent().appending(path: "Modules").path
        let sqlite = ClientGuide.root.appending(path: "Sources/CLibraries/CWeirSQLite").path
        try await compile(
            "-typecheck", "-module-name", "App", "-I", folder.path, "-I", modules, "-I", sqlite,
            ClientGuide.root.appending(path: "docs/client/recipes/\(recipe).swift").path)
    }
}
