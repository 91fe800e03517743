import Foundation
import ProgramRun
import Testing
import WeirClient

/// The recipes of docs/client/recipes, compiled with stand-ins of the libraries that they use.
@Suite(.timeLimit(.minutes(5))) struct RecipesTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func compile(_ options: [String]) async throws {
        let common = ["swiftc", "-parse-as-library", "-swift-version", "6", "-warnings-as-errors"]
        let run = try await CommandRun.tool(common + options, in: folder)
        try #require(run.code == 0, "\(run.errors)")
    }

    /// With a stand-in of the library that it uses, if it is not WeirClient alone.
    @Test(arguments: [("GRDB", "GRDB"), ("SQLiteSwift", "SQLite"), ("SwiftUI", "SwiftUI"), ("TaskLists", nil)])
    func aRecipeCompiles(recipe: String, library: String?) async throws {
        if let library {
            try await compile(
                [
                    "-emit-module", "-module-name", library, "-o", "\(folder.path)/\(library).swiftmodule",
                    ClientGuide.root.appending(path: "Tests/weir/WeirTests/Client/StandIns/\(library).swift").path,
                ])
        }
        try await compile(
            ["-typecheck", "-module-name", "App", "-I", folder.path] + modules() + [Self.path(ofRecipe: recipe)])
    }

    /// An app that opens a new file for an account which has rows shows them at once.
    @Test func theRecipeOfTaskListsHasTheRowsOfTheAccountOnceItIsOpen() async throws {
        try folder.write(
            "tables: { list: { columns: { name: text } }, item: { columns: { title: text } } }", to: "schema.yaml")
        try folder.write(String(repeating: "s", count: 32), to: "secret")
        let weir = try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder,
            settings: ["auth.method": "jwt", "auth.secret-file": folder.path + "/secret"])
        let run = try await CommandRun.run(["token", "create", "ada", "--auth.secret-file", "secret"], in: folder)
        #expect(run.code == 0, "\(run.errors)")
        let token = run.output.trimmingCharacters(in: .whitespacesAndNewlines)
        let sql =
            "CREATE TABLE list (id TEXT PRIMARY KEY, name TEXT); CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT)"
        let phone = try await ClientApp("phone", in: folder, sql, tables: ["list", "item"])
        try await phone.weir.attach("ada", server: ClientApp.url(weir.port)) { token }
        try phone.run("INSERT INTO list VALUES ('l', 'Home'); INSERT INTO item VALUES ('i', 'Milk')")
        try await phone.weir.sync()
        await phone.weir.close()

        try folder.write(
            """
            import Foundation

            struct Login: Authentication {
                func token() async throws -> String { CommandLine.arguments[3] }
            }

            @main struct App {
                static func main() async throws {
                    let file = URL(filePath: CommandLine.arguments[1])
                    _ = try await TaskLists.open(
                        file, account: "ada", serverURL: URL(string: CommandLine.arguments[2])!, auth: Login(),
                        marker: file.appendingPathExtension("marker"))
                }
            }
            """, to: "App.swift")
        let objects = try ["WeirClient", "JSONText"].flatMap(objects)
        try await compile(
            ["-module-name", "App", "-o", "app"] + modules() + [Self.path(ofRecipe: "TaskLists"), "App.swift"] + objects
        )
        try folder.write("", to: "laptop.sqlite")
        let laptop = try Database(path: folder.path + "/laptop.sqlite")
        try laptop.execute(sql)
        let app = try await CommandRun.tool(
            [folder.path + "/app", folder.path + "/laptop.sqlite", "http://127.0.0.1:\(weir.port)", token], in: folder)
        #expect(app.code == 0, "\(app.errors)")
        let rows = try laptop.map("SELECT name FROM list UNION ALL SELECT title FROM item") { $0.string(at: 0) }
        #expect(rows == ["Home", "Milk"])
        #expect(await weir.stop() == 0)
    }

    private static func path(ofRecipe name: String) -> String {
        ClientGuide.root.appending(path: "docs/client/recipes/\(name).swift").path
    }

    /// Where the tests were built.
    private func products() throws -> URL { try TestedProgram.weir.executable().deletingLastPathComponent() }

    /// The modules, as the tests were built with them.
    private func modules() throws -> [String] {
        let sqlite = ClientGuide.root.appending(path: "Sources/CLibraries/CWeirSQLite").path
        return ["-I", try products().appending(path: "Modules").path, "-I", sqlite]
    }

    /// What a module is linked from; its folder may have more, of files that were removed.
    private func objects(of module: String) throws -> [String] {
        let build = try products().appending(path: "\(module).build")
        return try String(contentsOf: build.appending(path: "sources"), encoding: .utf8).split(separator: "\n").map {
            build.appending(path: URL(filePath: String($0)).lastPathComponent + ".o").path
        }
    }
}
