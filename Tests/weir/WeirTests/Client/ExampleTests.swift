import Foundation
import Fuzzing
import ProgramRun
import Testing

/// The package of docs/client.md, as a new user builds and runs it.
@Suite(.timeLimit(.minutes(30))) struct ExampleTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private static let scratch = ClientGuide.root.appending(path: ".build-example").path

    /// A build is kept, but not its plan, which would lack the files that Weir has gained since.
    ///
    /// The first one takes half a minute, and that of the tests, which have the whole server in them, some minutes.
    private func swift(_ command: String, _ options: String...) async throws {
        let package = ClientGuide.root.appending(path: "docs/client/example").path
        let common = ["--package-path", package, "--scratch-path", Self.scratch, "--disable-build-manifest-caching"]
        let run = try await CommandRun.tool(["swift", command] + common + options, in: folder)
        try #require(run.code == 0, "\(run.output)\(run.errors)")
    }

    @Test func theExampleSyncsTwoDevices() async throws {
        try await swift("build")
        let program = Self.scratch + "/debug/contacts"
        let weir = try await WeirProcess.start(
            schema: ClientGuide.root.appending(path: "deploy/schema.yaml").path, in: folder)
        func contacts(_ device: String, _ words: String...) async throws -> [String] {
            let server = "CONTACTS_SERVER=http://127.0.0.1:\(weir.port)"
            let run = try await CommandRun.tool(["env", server, program, "\(device).sqlite"] + words, in: folder)
            #expect(run.code == 0, "\(run.output)\(run.errors)")
            return run.output.split(separator: "\n").map(String.init)
        }
        // Without a network; the second device has been used as well before it syncs for the first time.
        let grace = try #require(try await contacts("phone", "add", "Grace", "grace@example.com").first)
        let ada = try #require(try await contacts("laptop", "add", "Ada").first)
        #expect(try await contacts("phone", "list") == ["1 contacts", "\(grace)  Grace  grace@example.com  pending"])
        #expect(try await contacts("phone", "sync").last == "\(grace)  Grace  grace@example.com  synced")
        let both = ["2 contacts", "\(ada)  Ada  -  synced", "\(grace)  Grace  grace@example.com  synced"]
        #expect(try await contacts("laptop", "sync") == both)
        #expect(try await contacts("phone", "sync") == both)
        // Each edits offline.
        _ = try await contacts("phone", "rename", grace, "Grace Hopper")
        _ = try await contacts("laptop", "remove", ada)
        for device in ["phone", "laptop", "phone"] { _ = try await contacts(device, "sync") }
        let one = ["1 contacts", "\(grace)  Grace Hopper  grace@example.com  synced"]
        for device in ["phone", "laptop"] { #expect(try await contacts(device, "list") == one) }
        // A copy of the file is a device of its own.
        for suffix in ["", "-install"] {
            try FileManager.default.copyItem(
                atPath: "\(folder.path)/phone.sqlite\(suffix)", toPath: "\(folder.path)/copy.sqlite\(suffix)")
        }
        for device in ["phone", "copy"] { _ = try await contacts(device, "add", device) }
        for device in ["phone", "copy", "phone", "laptop"] { _ = try await contacts(device, "sync") }
        for device in ["copy", "laptop"] { #expect(try await contacts(device, "list").first == "3 contacts") }
        #expect(await weir.stop() == 0)
    }

    /// The commands after those that start a server and build the app; the one that does not end is watched.
    @Test func theCommandsOfTheGuideBringBothContactsToBothDevices() async throws {
        try await swift("build")
        let weir = try await WeirProcess.start(
            schema: ClientGuide.root.appending(path: "deploy/schema.yaml").path, in: folder)
        let blocks = try ClientGuide.blocks("sh", in: "docs/client.md", below: "## In ten minutes")
        #expect(blocks.first?.lines.last == "contacts=docs/client/example/.build/debug/contacts")
        let script = blocks.flatMap(\.lines).filter { $0.hasPrefix("$contacts") && !$0.hasSuffix(" watch") }
        let run = try await CommandRun.tool(
            [
                "contacts=\(Self.scratch)/debug/contacts", "CONTACTS_SERVER=http://127.0.0.1:\(weir.port)", "sh", "-e",
                "-c", (script + ["$contacts laptop.sqlite list"]).joined(separator: "\n"),
            ], in: folder)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        let lists = run.output.components(separatedBy: "2 contacts\n")
        // What the last sync of each device shows, and the list.
        #expect(lists.count == 4, "\(run.output)")
        for list in lists.dropFirst() {
            #expect(list.contains("Ada  -  synced") && list.contains("Grace  grace@example.com  synced"), "\(list)")
        }
        // As in a terminal, to which each line is written at once.
        let environment = ["CONTACTS_SERVER": "http://127.0.0.1:\(weir.port)"]
        let contacts = Self.scratch + "/debug/contacts"
        let watch = try WatchedProgram(
            URL(filePath: "/usr/bin/env"), ["stdbuf", "-oL", contacts, "laptop.sqlite", "watch"], in: folder,
            environment)
        #expect(await watch.line { $0 == "2 contacts" })
        for words in ["add Edith", "sync"] {
            let run = try await CommandRun.tool(
                ["sh", "-c", "CONTACTS_SERVER=http://127.0.0.1:\(weir.port) \(contacts) phone.sqlite \(words)"],
                in: folder)
            #expect(run.code == 0, "\(run.output)\(run.errors)")
        }
        #expect(await watch.line { $0.hasSuffix("  Edith  -  synced") })
        watch.kill()
        _ = await watch.exit()
        #expect(await weir.stop() == 0)
    }

    /// A build of many minutes, which has no seeds: a full run has it.
    @Test(.enabled(if: TestLength.current != .long)) func theTestsOfTheExamplePass() async throws {
        try await swift("build", "--build-tests")
        try await swift("test", "--skip-build", "--disable-xctest")
    }
}
