import Commands
import Testing

/// What help shows.
@Suite struct CommandHelpTests {
    private func printed(_ arguments: [String], version: String? = nil) -> String {
        if case .print(let text) = program.parse(arguments, version: version) { text } else { "not printed" }
    }

    @Test func showsTheSameHelpInEveryWayOfAsking() {
        let help = printed(["schema", "check", "--help"])
        #expect(
            help == """
                Usage: weir schema check [OPTIONS] FILE

                Check a schema file.

                Arguments:
                  FILE  The schema file.

                Options:
                  --help, -h  Show this help.

                """)
        #expect(printed(["schema", "check", "-h"]) == help)
        #expect(printed(["schema", "check", "a", "--help"]) == help)
        #expect(printed(["help", "schema", "check"]) == help)
    }

    @Test func listsTheCommandsOfAGroup() {
        #expect(
            printed(["help", "schema"]) == """
                Usage: weir schema COMMAND

                Work with schema files.

                Commands:
                  check  Check a schema file.
                  show   Show schema files.

                See "weir help schema COMMAND" for more.

                """)
        #expect(printed(["--help"]).contains("See \"weir help COMMAND\" for more."))
    }

    @Test func listsOptionsUnderTheirSections() {
        let help = printed(["run", "--help"])
        #expect(help.contains("Options:\n  --data PATH  Where the data is kept.\n  --quiet      Say little.\n"))
        #expect(help.contains("\nGateway:\n  --compress[=BOOL]  Compress answers.\n"))
    }

    @Test func wrapsLongTextUnderItsColumn() {
        let words = Array(repeating: "word", count: 40).joined(separator: " ")
        let command = Command<Action>(
            "c", "C.", .run,
            options: [
                CommandOption("short", .none, words),
                CommandOption("an-option-with-a-very-long-name.indeed", .none, "Long."),
            ])
        guard case .print(let help) = command.parse(["--help"]) else {
            Issue.record("no help")
            return
        }
        #expect(help.split(separator: "\n").allSatisfy { $0.count <= 100 })
        #expect(help.contains("\n              word word"))
        #expect(help.contains("  --an-option-with-a-very-long-name.indeed\n              Long.\n"))
    }

    @Test func showsTheVersion() {
        #expect(printed(["--version"], version: "1.2.3") == "weir 1.2.3\n")
    }
}

/// Which name a mistyped one stands for.
@Suite struct NearestNameTests {
    @Test(arguments: [
        ("gatway", "gateway"), ("gatewya", "gateway"), ("fan-out", "fanout"), ("ordring", "ordering"),
        ("gateway", "gateway"),
    ])
    func findsTheNameWithTheFewestEdits(_ typed: String, _ meant: String) {
        #expect(NearestName.find(typed, among: ["ordering", "fanout", "gateway", "ingest"]) == meant)
    }

    @Test(arguments: ["", "x", "zzzzzzzz", String(repeating: "gateway", count: 40)])
    func findsNothingWhereAllIsFar(_ typed: String) {
        #expect(NearestName.find(typed, among: ["ordering", "fanout", "gateway", "ingest"]) == nil)
    }

    @Test func countsSwappedNeighboursAsOneEdit() {
        #expect(NearestName.find("acb", among: ["axy", "abc"]) == "abc")
        #expect(NearestName.find("ba", among: ["xa", "ab"]) == "xa")
    }
}
