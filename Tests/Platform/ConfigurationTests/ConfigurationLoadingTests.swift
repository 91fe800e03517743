import Commands
import Configuration
import Testing

/// Where values come from.
@Suite struct ConfigurationLoadingTests {
    @Test func hasItsDefaultsWhereNothingIsSet() throws {
        let server = try Fixture.server().settings
        #expect(server.address == NetworkAddress("127.0.0.1:8080"))
        #expect(server.maxBatch == 4_194_304)
        #expect(server.wait == .seconds(10))
        #expect(server.compress == false)
        #expect(server.face == .text)
        #expect(server.brokers == ["a:1"])
        #expect(server.title == nil)
    }

    @Test func readsNestedAndDottedKeysOfTheFile() throws {
        let server = try Fixture.server(
            file: """
                server:
                  address: "[::1]:0"
                  max-batch-bytes: 64KiB
                  limits: {wait: 250ms}
                  compress: true
                  face: json
                  brokers: [b:1, c:2]
                  title: 123
                server.workers: 7
                """
        ).settings
        #expect(server.address == NetworkAddress(host: "::1", port: 0))
        #expect(server.maxBatch == 65_536)
        #expect(server.wait == .milliseconds(250))
        #expect(server.compress)
        #expect(server.face == .json)
        #expect(server.brokers == ["b:1", "c:2"])
        #expect(server.title == "123")
        #expect(server.workers == 7)
    }

    @Test func prefersFlagsToTheEnvironmentToTheFileToTheDefault() throws {
        let file = "server: {workers: 3}\n"
        let environment = ["WEIR_SERVER_WORKERS": "4", "PATH": "/bin", "WEIRD": "x"]
        let flags = [CommandOptionValue("server.workers", "5")]
        #expect(try Fixture.server().settings.workers == 2)
        #expect(try Fixture.server(file: file).settings.workers == 3)
        #expect(try Fixture.server(file: file, environment: environment).settings.workers == 4)
        #expect(try Fixture.server(file: file, environment: environment, flags: flags).settings.workers == 5)
    }

    @Test func readsNestedKeysFromTheEnvironment() throws {
        let server = try Fixture.server(environment: [
            "WEIR_SERVER_LIMITS_WAIT": "2s", "WEIR_SERVER_BROKERS": "b:1, c:2", "WEIR_SERVER_TITLE": "",
        ]).settings
        #expect(server.wait == .seconds(2))
        #expect(server.brokers == ["b:1", "c:2"])
        #expect(server.title == "")
    }

    @Test func takesABooleanFlagAloneForTrue() throws {
        #expect(try Fixture.server(flags: [CommandOptionValue("server.compress", nil)]).settings.compress)
        #expect(try Fixture.server(flags: [CommandOptionValue("server.compress", "false")]).settings.compress == false)
    }

    @Test func readsTheFileThatTheFlagNamesBeforeTheVariables() throws {
        let files = ["a.yaml": "server.workers: 8", "b.yaml": "server.workers: 9"]
        let environment = ["WEIR_CONFIG": "b.yaml"]
        let byVariable = try Fixture.server(file: "bad", environment: environment, files: files)
        #expect(byVariable.settings.workers == 9)
        let flags = [CommandOptionValue("config", "a.yaml")]
        let byFlag = try Fixture.server(file: "bad", environment: environment, flags: flags, files: files)
        #expect(byFlag.settings.workers == 8)
    }

    @Test(arguments: ["", "# nothing\n", "server:\n", "~\n"])
    func takesAnEmptyFileAndAnEmptySectionForNothing(_ file: String) throws {
        #expect(try Fixture.server(file: file).settings.workers == 2)
    }

    @Test func requiresTheKeysOfTheComponentsThatAreReadAlone() throws {
        #expect(throws: Never.self) { try Fixture.server() }
        let problems = #expect(throws: ConfigurationProblems.self) {
            try Fixture.load { $0.read(StoreConfiguration.self) }
        }
        #expect(problems?.problems.map(\.key) == ["store.directory", "store.token"])
    }

    @Test func readsOneKeyWithoutTheOthersOfItsComponent() throws {
        let flags = [CommandOptionValue("data", "/data")]
        let configuration = try Fixture.load(flags: flags) { $0.read(\StoreConfiguration.directory) }
        #expect(configuration.settings == "/data")
        #expect(configuration.inForce.map(\.key) == ["store.directory"])
        #expect(Fixture.problems { _ = $0.read(\StoreConfiguration.directory) }.count == 1)
    }

    @Test func readsNothingMoreOnceAChoiceIsRefused() throws {
        func load(_ face: String) throws(ConfigurationProblems) {
            let environment = ["WEIR_SERVER_FACE": face]
            let sources = ConfigurationSources(environment: environment)
            _ = try Fixture.schema.load(from: sources) { (reader) throws(ConfigurationProblem) in
                guard try reader.choice(\ServerConfiguration.face) == .json else { return }
                _ = reader.read(StoreConfiguration.self)
            }
        }
        #expect(throws: Never.self) { try load("text") }
        #expect(throws: ConfigurationProblems.self) { try load("json") }
        let problems = #expect(throws: ConfigurationProblems.self) { try load("xml") }
        #expect(problems?.problems.map(\.key) == ["server.face"])
    }

    @Test func reportsWhatWasReadAndWhereItComesFrom() throws {
        let configuration = try Fixture.server(
            file: "server:\n  workers: 3\n", environment: ["WEIR_SERVER_FACE": "json"],
            flags: [CommandOptionValue("data", "/data")], files: ["t": "tokentoken\n"])
        #expect(configuration.inForce.map(\.key) == ServerConfiguration.settings.map { "server.\($0.name)" })
        let origins = Dictionary(uniqueKeysWithValues: configuration.inForce.map { ($0.key, "\($0.origin)") })
        #expect(origins["server.workers"] == "weir.yaml:2:12")
        #expect(origins["server.face"] == "WEIR_SERVER_FACE")
        #expect(origins["server.address"] == "default")
        #expect(configuration.inForce.first { $0.key == "server.max-batch-bytes" }?.value == "4MiB")
    }

    @Test func reportIsAConfigurationFileWithTheSameValues() throws {
        let configuration = try Fixture.server(
            file: "server: {title: 'a: \"b\\', brokers: [b:1, c:2], limits: {wait: 9s}}")
        let report = configuration.report()
        #expect(report.contains("server.title: \"a: \\\"b\\\\\""))
        #expect(report.contains("server.limits.wait: 9s"))
        let again = try Fixture.server(file: report)
        #expect(again.inForce.map(\.value) == configuration.inForce.map(\.value))
        #expect(try Fixture.server().report().contains("# server.title:"))
    }
}
