import Commands
import Configuration
import Foundation
import Testing

/// How secrets are read, and that they are shown nowhere.
@Suite struct SecretTests {
    private let directory = [CommandOptionValue("data", "/data")]

    private func store(
        file: String? = nil, environment: [String: String] = [:], flags: [CommandOptionValue] = [],
        files: [String: String] = [:]
    ) throws -> Configuration<StoreConfiguration> {
        try Fixture.load(file: file, environment: environment, flags: directory + flags, files: files) { $0.read() }
    }

    @Test(arguments: [
        ("hunter22\n", "hunter22"), ("hunter22", "hunter22"), ("hunter22\r\nmore\n", "hunter22"),
        (" a b \n", " a b "),
    ])
    func readsTheFirstLineOfTheFileNamed(_ content: String, _ secret: String) throws {
        let configuration = try store(
            flags: [CommandOptionValue("store.token-file", "t")], files: ["t": content])
        #expect(configuration.settings.token.reveal() == secret)
        #expect(configuration.report().contains("# --store.token-file") == false)
        #expect(configuration.report().contains("t (named by --store.token-file)"))
    }

    @Test func takesTheSecretOfTheHigherSource() throws {
        let file = "store: {token-file: t}\n"
        let files = ["t": "from-the-file"]
        let byFile = try store(file: file, files: files)
        #expect(byFile.settings.token.reveal() == "from-the-file")
        // The file named is not even looked for once a variable overrides it.
        let byVariable = try store(file: file, environment: ["WEIR_STORE_TOKEN": "from-the-variable"])
        #expect(byVariable.settings.token.reveal() == "from-the-variable")
    }

    @Test func refusesASecretAndItsFileFromOneSource() {
        let problems = Fixture.problems(
            environment: ["WEIR_STORE_TOKEN": "a", "WEIR_STORE_TOKEN_FILE": "t"], files: ["t": "b"])
        #expect(problems == ["WEIR_STORE_TOKEN_FILE: store.token: is given already, by WEIR_STORE_TOKEN"])
    }

    @Test func hasNoFlagForASecret() {
        #expect(
            Fixture.problems(flags: [CommandOptionValue("store.token", "x")]) == [
                "--store.token: is no setting; did you mean --store.token-file?"
            ])
        #expect(!Fixture.schema.options.contains { $0.name == "store.token" })
        #expect(Fixture.schema.options.contains { $0.name == "store.token-file" })
    }

    @Test func saysWhichFileOfASecretCannotBeRead() {
        #expect(
            Fixture.problems(
                environment: ["WEIR_STORE_TOKEN_FILE": "t"], flags: directory,
                reading: { _ = $0.read(StoreConfiguration.self) }) == [
                    "t (named by WEIR_STORE_TOKEN_FILE): store.token-file: cannot be read: No such file or directory"
                ])
        #expect(Fixture.problems(environment: ["WEIR_STORE_TOKEN_FILE": ""]).count == 1)
    }

    @Test func opensNoFileOfAComponentThatIsNotRead() throws {
        let file = "store: {token-file: t}\nserver: {workers: 3}\n"
        let environment = ["WEIR_STORE_PASSWORD_FILE": "p"]
        let configuration = try Fixture.server(file: file, environment: environment)
        #expect(configuration.settings.workers == 3)
        #expect(!configuration.report().contains("store."))
        // Other values are checked whether they are read or not.
        #expect(Fixture.problems(file: file, environment: ["WEIR_STORE_PASSWORD": "abc"]).count == 1)
    }

    @Test func isNeverShown() throws {
        let secret = "correct-horse"
        let configuration = try store(environment: ["WEIR_STORE_TOKEN": secret, "WEIR_STORE_PASSWORD": secret])
        let store = configuration.settings
        var dumped = ""
        dump(store, to: &dumped)
        dump(configuration, to: &dumped)
        let shown = "\(store) \(String(reflecting: store)) \(configuration.report()) \(configuration.inForce)"
        #expect(!shown.contains(secret))
        #expect(!dumped.contains(secret))
        #expect(configuration.report().contains("# store.token: ***"))
        let tooLong = "this-password-is-longer-than-allowed"
        let problems = Fixture.problems(environment: ["WEIR_STORE_PASSWORD": tooLong])
        #expect(
            problems == [
                "WEIR_STORE_PASSWORD: store.password: the value is not allowed; "
                    + "expected a secret of 4 to 20 bytes on one line"
            ])
    }

    @Test func readsFilesOfTheDisk() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "weir-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
        let file = folder.appending(path: "token")
        let content = Data(repeating: UInt8(ascii: "x"), count: 200_000)
        try content.write(to: file)
        #expect(try ConfigurationSources.contents(of: file.path, limit: 200_000) == Array(content))
        let tooLarge = #expect(throws: FileFault.self) {
            try ConfigurationSources.contents(of: file.path, limit: 199_999)
        }
        #expect(tooLarge?.message == "the file has more than 199999 bytes")
        let absent = #expect(throws: FileFault.self) {
            try ConfigurationSources.contents(of: folder.appending(path: "absent").path, limit: 1)
        }
        #expect(absent?.isAbsent == true)
        let directory = #expect(throws: FileFault.self) {
            try ConfigurationSources.contents(of: folder.path, limit: 1)
        }
        #expect(directory?.isAbsent == false)
    }
}
