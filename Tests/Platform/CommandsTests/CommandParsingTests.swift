import Commands
import Testing

enum Action: Sendable, Equatable {
    case run
    case check
    case show
}

let program = Command<Action>(
    "weir", "A backend.",
    subcommands: [
        Command(
            "run", "Run every role.", .run,
            options: [
                CommandOption("data", .required("PATH"), "Where the data is kept."),
                CommandOption("quiet", .none, "Say little."),
                CommandOption("compress", .optional("BOOL"), "Compress answers.", section: "Gateway"),
            ]),
        Command(
            "schema", "Work with schema files.",
            subcommands: [
                Command("check", "Check a schema file.", .check, arguments: [.one("FILE", "The schema file.")]),
                Command(
                    "show", "Show schema files.", .show,
                    arguments: [.one("FORMAT", "How."), .many("FILE", "The schema files.")]),
            ]),
    ])

/// What calls mean.
@Suite struct CommandParsingTests {
    private func invocation(_ arguments: [String]) throws -> CommandInvocation<Action> {
        guard case .invoke(let invocation) = program.parse(arguments) else {
            throw Refused(text: "\(program.parse(arguments))")
        }
        return invocation
    }

    private struct Refused: Error { let text: String }

    @Test func readsOptionsInBothSpellings() throws {
        for arguments in [["run", "--data", "x", "--quiet"], ["run", "--data=x", "--quiet"]] {
            let call = try invocation(arguments)
            #expect(call.action == .run)
            #expect(call.option("data")?.value == "x")
            #expect(call.options == [CommandOptionValue("data", "x"), CommandOptionValue("quiet", nil)])
        }
    }

    @Test func keepsEqualsSignsAndEmptyTextInValues() throws {
        #expect(try invocation(["run", "--data=a=b"]).option("data")?.value == "a=b")
        #expect(try invocation(["run", "--data="]).option("data")?.value == "")
        #expect(try invocation(["run", "--data=--x"]).option("data")?.value == "--x")
        #expect(try invocation(["run", "--data", "-"]).option("data")?.value == "-")
    }

    @Test func takesAnOptionalValueOnlyAfterAnEqualsSign() throws {
        #expect(try invocation(["run", "--compress"]).option("compress")?.value == nil)
        #expect(try invocation(["run", "--compress=no"]).option("compress")?.value == "no")
        #expect(refusal(["run", "--compress", "no"]).contains("unexpected argument \"no\""))
    }

    @Test func findsNestedCommandsAndTheirArguments() throws {
        #expect(try invocation(["schema", "check", "a.yaml"]).arguments == ["a.yaml"])
        #expect(try invocation(["schema", "show", "text", "a", "b"]).arguments == ["text", "a", "b"])
        #expect(try invocation(["schema", "check", "--", "--odd"]).arguments == ["--odd"])
    }

    private func refusal(_ arguments: [String]) -> String {
        if case .refuse(let text) = program.parse(arguments) { text } else { "not refused" }
    }

    @Test(arguments: [
        (["rnu"], "unknown command \"rnu\"; did you mean \"run\"?\nSee \"weir --help\"."),
        (["schema", "chekc"], "did you mean \"check\"?\nSee \"weir schema --help\"."),
        (["frobnicate"], "unknown command \"frobnicate\"\n"),
        (["run", "--dtaa", "x"], "unknown option --dtaa; did you mean --data?"),
        (["run", "--dataa=x"], "did you mean --data?"),
        (["run", "--hepl"], "did you mean --help?"),
        (["run", "--data"], "the option --data needs a value: --data PATH"),
        (["run", "--data", "--quiet"], "the option --data needs a value"),
        (["run", "--data", "a", "--data=b"], "--data is given twice"),
        (["run", "--quiet=yes"], "--quiet takes no value"),
        (["run", "-d"], "unknown option -d"),
        (["run", "extra"], "unexpected argument \"extra\""),
        (["--data", "x", "run"], "--data must come after a command"),
        (["schema", "check"], "the argument FILE is missing"),
        (["schema", "show", "text"], "the argument FILE is missing"),
        (["schema", "check", "a", "b"], "unexpected argument \"b\""),
        ([], "a command is missing"),
        (["schema"], "a command is missing"),
        (["help", "rum"], "did you mean \"run\"?"),
        (["run", "--\u{212A}"], "unknown option --\u{212A}"),
    ])
    func refusesCallsThatDoNotFit(_ arguments: [String], _ message: String) {
        #expect(refusal(arguments).contains(message))
    }

    @Test func comparesNamesByteByByte() {
        let kelvin = Command<Action>("k", "K.", subcommands: [Command("K", "Run.", .run)])
        guard case .refuse = kelvin.parse(["\u{212A}"]) else {
            Issue.record("the Kelvin sign was taken for K")
            return
        }
    }

    @Test func usageErrorsHaveTheCodeOfSysexits() {
        #expect(ExitCode.success.rawValue == 0)
        #expect(ExitCode.failure.rawValue == 1)
        #expect(ExitCode.usage.rawValue == 64)
    }
}
