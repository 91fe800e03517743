import Foundation
import ProgramRun
import Testing

/// The package of docs/client.md, as a new user builds and runs it.
@Suite(.timeLimit(.minutes(10))) struct ExampleTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    /// A build takes half a minute and is kept, but not its plan, which would lack the files that Weir has gained since.
    private func build() async throws -> String {
        let scratch = ClientGuide.root.appending(path: ".build-example").path
        let options = [
            "--package-path", ClientGuide.root.appending(path: "docs/client/example").path, "--scratch-path", scratch,
            "--disable-build-manifest-caching",
        ]
        let run = try await CommandRun.tool(["swift", "build"] + options, in: folder)
        try #require(run.code == 0, "\(run.output)\(run.errors)")
        return scratch + "/debug/contacts"
    }

    @Test func theExampleSyncsTwoDevices() async throws {
        let program = try await build()
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

    @Test func theDocumentShowsTheExample() throws {
        let sources = "docs/client/example/Sources/contacts/"
        try ClientGuide.expectLines(
            ofBlocks: "contacts", in: [sources + "Contacts.swift", sources + "AppDatabase.swift"], least: 2)
    }
}
