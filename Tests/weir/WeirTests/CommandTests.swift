import Foundation
import Testing

/// What the commands print, and how they end.
@Suite(.timeLimit(.minutes(5))) struct CommandTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    @Test func helpNamesTheCommandsAndTheOptions() async throws {
        let help = try await CommandRun.run("--help", in: folder)
        #expect(help.code == 0)
        #expect(help.errors.isEmpty)
        for command in ["run", "verify", "replay", "schema", "config", "config-reference"] {
            #expect(help.output.contains("\n  \(command) "))
        }
        let run = try await CommandRun.run("run", "--help", in: folder)
        #expect(run.code == 0)
        for option in ["--schema PATH", "--data PATH", "--address HOST:PORT", "--log-format text|json", "--help"] {
            #expect(run.output.contains("\n  \(option)"))
        }
        #expect(try await CommandRun.run("help", "run", in: folder).output == run.output)
        #expect(try await CommandRun.run("run", "-h", in: folder).output == run.output)
    }

    @Test func theVersionNamesTheProgramOnce() async throws {
        let version = try await CommandRun.run("--version", in: folder)
        #expect(version.code == 0)
        #expect(version.output.wholeMatch(of: /weir [0-9]+\.[0-9]+\.[0-9]+\n/) != nil, "\(version.output)")
    }

    @Test(arguments: [
        (["rnu"], "\"rnu\"; did you mean \"run\"?"), (["schema", "chek", "x"], "did you mean \"check\"?"),
        (["run", "--dtaa", "x"], "--dtaa; did you mean --data?"),
        (["config", "--adress", "x"], "--adress; did you mean --address?"),
        (["schema", "check"], "FILE is missing"), ([], "a command is missing"), (["schema"], "a command is missing"),
        (["run", "--data"], "--data"), (["run", "--data", "a", "--data", "b"], "--data is given twice"),
        (["schema", "check", "a", "b"], "b"),
    ]) func aWrongCallIsExplainedAndEndsWith64(arguments: [String], explanation: String) async throws {
        let run = try await CommandRun.run(arguments, in: folder)
        #expect(run.code == 64)
        #expect(run.output.isEmpty)
        #expect(run.errors.hasPrefix("Error: "))
        #expect(run.errors.contains(explanation), "\(run.errors)")
        #expect(run.errors.contains("weir"))
    }

    @Test func aGoodSchemaIsShown() async throws {
        try folder.write(TestServer.schema, to: "schema.yaml")
        let check = try await CommandRun.run("schema", "check", "schema.yaml", in: folder)
        #expect(check.code == 0)
        #expect(check.errors.isEmpty)
        #expect(check.output.contains("schema.yaml: 4 tables, version "))
        #expect(check.output.contains("  seat: 2 columns, checkBase, rank 0\n"))
    }

    @Test func everyFaultOfASchemaIsNamedWithItsLine() async throws {
        let schema = """
            tables:
              person:
                columns:
                  name: txt
              list:
                polcy: x
            """
        try folder.write(schema, to: "bad.yaml")
        let check = try await CommandRun.run("schema", "check", "bad.yaml", in: folder)
        #expect(check.code == 1)
        #expect(check.output.isEmpty)
        let lines = check.errorLines
        #expect(lines.count == 3)
        #expect(lines.contains { $0.hasPrefix("bad.yaml:4:13: ") && $0.hasSuffix("did you mean text?") })
        #expect(lines.contains { $0.hasPrefix("bad.yaml:5:3: ") && $0.contains("list has no columns") })
        #expect(lines.contains { $0.hasPrefix("bad.yaml:6:5: ") && $0.hasSuffix("did you mean policy?") })
        let missing = try await CommandRun.run("schema", "check", "none.yaml", in: folder)
        #expect(missing.code == 1)
        #expect(missing.errors == "the schema file none.yaml cannot be read: No such file or directory\n")
    }
}
