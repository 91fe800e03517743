import Commands
import Configuration
import Testing

/// What is refused, and how it is said.
@Suite struct ConfigurationProblemTests {
    @Test(arguments: [
        ("server:\n  wrokers: 3\n", "weir.yaml:2:3: server.wrokers: is no setting; did you mean server.workers?"),
        ("sevrer:\n  workers: 3\n", "weir.yaml:1:1: sevrer: is no setting; did you mean server?"),
        ("workers: 3\n", "weir.yaml:1:1: workers: is no setting; did you mean server.workers?"),
        ("config: x\n", "weir.yaml:1:1: config: is no setting"),
        ("server: 3\n", "weir.yaml:1:9: server: expected a mapping of keys, found an integer"),
        ("server: {workers: {a: 1}}\n", "weir.yaml:1:19: server.workers: expected a value, found a mapping"),
        (
            "server:\n  workers:\n",
            "weir.yaml:2:11: server.workers: has no value; leave the key out where the default is meant"
        ),
        ("server: {brokers: [a, ~]}\n", "weir.yaml:1:19: server.brokers: a list holds texts alone"),
        (
            "server: {workers: [1]}\n",
            "weir.yaml:1:19: server.workers: the list is not allowed; expected an integer from 1 to 64"
        ),
        (
            "server.workers: 1\nserver: {workers: 2}\n",
            "weir.yaml:2:19: server.workers: is given already, by weir.yaml:1:17"
        ),
        (
            "server: {workers: 1, workers: 2}\n",
            "weir.yaml:1:22: the key \"workers\" is repeated; its first use is at 1:10"
        ),
        ("- a\n", "weir.yaml:1:1: expected a mapping, found a sequence"),
        ("a: *b\n", "weir.yaml:1:4: aliases are not supported: write the value out"),
    ])
    func namesThePlaceInTheFile(_ file: String, _ problem: String) {
        #expect(Fixture.problems(file: file) == [problem])
    }

    @Test func refusesVariablesThatAreNoSettings() {
        #expect(
            Fixture.problems(environment: ["WEIR_SERVER_WROKERS": "3", "WEIR_QQ": "", "OTHER": "x"]) == [
                "WEIR_QQ: is no setting",
                "WEIR_SERVER_WROKERS: is no setting; did you mean WEIR_SERVER_WORKERS?",
            ])
    }

    @Test func refusesFlagsThatAreNoSettings() {
        #expect(
            Fixture.problems(flags: [CommandOptionValue("server.workres", "3")]) == [
                "--server.workres: is no setting; did you mean --server.workers?"
            ])
    }

    @Test(arguments: [
        ("workers", "0", "an integer from 1 to 64"), ("workers", "65", "an integer from 1 to 64"),
        ("workers", "2.5", "an integer from 1 to 64"), ("workers", "99999999999999999999", "an integer from 1 to 64"),
        ("workers", "", "an integer from 1 to 64"), ("compress", "yes", "true or false"),
        ("face", "Text", "one of text, json"),
        ("limits.wait", "10", "a duration from 1ms to 50s, with a unit (ns, us, ms, s, m, h, d)"),
        ("limits.wait", "51s", "a duration from 1ms to 50s, with a unit (ns, us, ms, s, m, h, d)"),
        ("max-batch-bytes", "4MB", "a size from 1KiB to 64MiB, in bytes or with a unit (B, KiB, MiB, GiB, TiB)"),
        ("max-batch-bytes", "1023", "a size from 1KiB to 64MiB, in bytes or with a unit (B, KiB, MiB, GiB, TiB)"),
        ("address", "8080", "a host and a port from 0 to 65535, as host:port or [IPv6]:port"),
        ("brokers", "a,b,c,d", "a list of 1 to 3 texts, separated by commas"),
        ("title", "12345678901", "one line of 0 to 10 bytes of text"),
    ])
    func saysWhatIsAllowed(_ key: String, _ value: String, _ expected: String) {
        #expect(
            Fixture.problems(flags: [CommandOptionValue("server.\(key)", value)]) == [
                "--server.\(key): server.\(key): \"\(value)\" is not allowed; expected \(expected)"
            ])
    }

    @Test func reportsEveryProblemTogether() {
        let problems = Fixture.problems(
            file: "server: {workers: 0}\nnope: 1\n", environment: ["WEIR_SERVER_FACE": "xml", "WEIR_X": "1"],
            flags: [CommandOptionValue("server.compress", "maybe")]
        ) { reader in
            _ = reader.read(ServerConfiguration.self)
            _ = reader.read(StoreConfiguration.self)
        }
        #expect(problems.count == 7)
        for part in ["nope", "WEIR_X", "weir.yaml:1:19", "xml", "maybe", "store.directory", "store.token"] {
            #expect(problems.contains { $0.contains(part) })
        }
    }

    @Test func refusesAWrongValueThatAnotherOverrides() {
        let problems = Fixture.problems(
            file: "server: {workers: 0}\n", flags: [CommandOptionValue("server.workers", "3")])
        #expect(problems.count == 1)
    }

    @Test func refusesAKeyGivenByBothItsFlags() {
        let flags = [CommandOptionValue("data", "a"), CommandOptionValue("store.directory", "b")]
        #expect(Fixture.problems(flags: flags) == ["--store.directory: store.directory: is given already, by --data"])
    }

    @Test func checksTheRulesBetweenKeysWithTheirOrigin() {
        #expect(
            Fixture.problems(environment: ["WEIR_SERVER_BROKERS": "a,b,c"]) == [
                "WEIR_SERVER_BROKERS: server.brokers: at most one for each of the 2 workers"
            ])
        #expect(Fixture.problems(environment: ["WEIR_SERVER_BROKERS": "a,b,c"]) { _ in } == [])
    }

    @Test func saysHowToSetARequiredKey() {
        #expect(
            Fixture.problems(environment: ["WEIR_STORE_TOKEN": "x"], reading: { _ = $0.read(StoreConfiguration.self) })
                == [
                    "store.directory: is required; set it in the configuration file, as WEIR_STORE_DIRECTORY "
                        + "or as --store.directory; expected a path"
                ])
    }

    @Test func refusesANamedFileThatCannotBeRead() {
        let problems = Fixture.problems(flags: [CommandOptionValue("config", "absent.yaml")])
        #expect(problems == ["absent.yaml: cannot be read: No such file or directory"])
    }

    @Test func comparesKeysByteByByte() {
        // The Kelvin sign is canonically equivalent to K.
        let problems = Fixture.problems(environment: ["WEIR_SERVER_WOR\u{212A}ERS": "3"])
        #expect(problems == ["WEIR_SERVER_WOR\u{212A}ERS: is no setting; did you mean WEIR_SERVER_WORKERS?"])
    }

    @Test func refusesControlCharactersInTexts() {
        #expect(Fixture.problems(file: "server: {title: \"a\\0b\"}").count == 1)
        #expect(Fixture.problems(file: "server: {title: \"a\\nb\"}").count == 1)
    }
}
