import Commands
import Configuration
import Testing

/// Help and reference come from the declarations.
@Suite struct ConfigurationDocumentationTests {
    @Test func listsEveryKeyInTheReference() {
        let text = Fixture.schema.markdown()
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| `") }
        #expect(rows.count == ServerConfiguration.settings.count + StoreConfiguration.settings.count)
        #expect(
            rows.contains(
                "| `server.max-batch-bytes` | a size from 1KiB to 64MiB, in bytes or with a unit (B, KiB, MiB, GiB, TiB) "
                    + "| `4MiB` | The largest request. |"))
        #expect(rows.contains("| `store.directory` (`--data`) | a path | required | Where data is kept. |"))
        #expect(
            rows.contains(
                "| `store.password`, `store.password-file` | a secret of 4 to 20 bytes on one line | none "
                    + "| Who may enter. |"))
        #expect(text.contains("How lines look: one \\| the other."))
        #expect(text.contains("\n## Server\n"))
        #expect(text == Fixture.schema.markdown())
    }

    @Test func offersEveryKeyAsAnOption() throws {
        let command = Command<Int>("run", "Run.", 1, options: Fixture.schema.options)
        guard case .print(let help) = command.parse(["--help"]) else {
            Issue.record("no help")
            return
        }
        #expect(help.contains("\nServer (server):\n"))
        #expect(help.contains("--config PATH"))
        #expect(help.contains("--data PATH"))
        #expect(help.contains("Where data is kept. Required. Short for --store.directory."))
        #expect(help.contains("--server.workers NUMBER"))
        #expect(help.contains("Threads. Default: 2."))
        #expect(help.contains("--server.compress[=true|false]"))
        let arguments = ["--server.workers=9", "--server.compress", "--data", "x"]
        guard case .invoke(let call) = command.parse(arguments) else {
            Issue.record("refused")
            return
        }
        let server = try Fixture.server(flags: call.options).settings
        #expect(server.workers == 9)
        #expect(server.compress)
    }

    @Test func offersTheKeysThatACommandReads() {
        let options = Fixture.schema.options { reader in
            _ = reader.read(\ServerConfiguration.workers)
            _ = reader.read(StoreConfiguration.self)
        }
        #expect(
            options.map(\.name) == [
                "config", "data", "server.workers", "store.directory", "store.password-file", "store.token-file",
            ])
    }
}
