import Foundation
import Fuzzing
import ProgramRun
import Testing

/// The program `weir-demo`, with real devices and a real pipeline.
@Suite struct DemoTests {
    @Test(.timeLimit(.minutes(5))) func devicesThatWereKilledWithTheServerAreEqualAtTheEndOfTheNextRun() async throws {
        let folder = try TestFolder()
        let files = ["--folder", folder.path + "/demo", "--devices", "8"]
        for seed in 1...TestLength.count(1, long: 6) {
            let first = try WatchedProgram(
                files + ["--seconds", "600", "--seed", "\(seed)"], of: .demo, in: folder)
            // They have written, and go on doing so. A line comes every five seconds.
            #expect(await first.line(count: TestLength.count(1, long: 2)) { $0.contains(" left: ") })
            first.kill()
            #expect(await first.exit() == SIGKILL)
        }
        let second = try await CommandRun.run(files + ["--seconds", "3", "--seed", "0"], of: .demo, in: folder)
        #expect(second.code == 0, "\(second.output)\(second.errors)")
        #expect(second.output.hasPrefix("Equal: 8 devices and the server have the same "), "\(second.output)")
        #expect(!second.output.contains(" same 0 rows"), "\(second.output)")
        let kept = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/demo")
        #expect(kept.contains("device-8.sqlite") && kept.contains("server"))
        #expect(!kept.contains { $0.hasPrefix("reference") })
    }

    @Test(.timeLimit(.minutes(5))) func aDifferenceIsPrintedAndEndsWithOne() async throws {
        let folder = try TestFolder()
        let arguments = ["--folder", folder.path + "/demo", "--devices", "2", "--seconds", "1", "--seed", "1"]
        let first = try await CommandRun.run(arguments, of: .demo, in: folder)
        #expect(first.code == 0, "\(first.output)\(first.errors)")
        // Behind the back of the triggers, in a row that no edit of the next run touches.
        let script = """
            import sqlite3, sys
            file = sqlite3.connect(sys.argv[1])
            for name, in file.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                file.execute(f'DROP TRIGGER "{name}"')
            file.execute("INSERT INTO person (id, name) VALUES ('strange', 'x')")
            file.commit()
            """
        try folder.write(script, to: "damage.py")
        let damage = try await CommandRun.tool(["python3", "damage.py", "demo/device-2.sqlite"], in: folder)
        #expect(damage.code == 0, "\(damage.errors)")
        let second = try await CommandRun.run(arguments, of: .demo, in: folder)
        #expect(second.code == 1)
        #expect(second.output.contains("person strange: device-2 has it, the server lacks it"), "\(second.output)")
    }

    @Test(.timeLimit(.minutes(5))) func onATerminalTheDevicesAreRedrawnAndTheComparisonFollows() async throws {
        let run = try await TerminalRun.run(
            ["--devices", "8", "--seconds", "2", "--seed", "1"], of: .demo, in: TestFolder(), columns: 60, rows: 24)
        #expect(run.code == 0, "\(run.text)")
        var shown = ShownScreen(columns: 60, rows: 24)
        shown.write(run.text)
        #expect(shown.redraws >= 1 && shown.unknown == [], "\(run.text)")
        let text = shown.text
        #expect(text.first?.hasPrefix("seed 1, files in ") == true, "\(text)")
        let screen = try #require(text.firstIndex { $0.hasPrefix("0 s left, ") }, "\(text)")
        #expect(text.count { $0.contains(" s left, ") } == 1, "\(text)")
        #expect(text[screen + 1].hasPrefix("from write to seen on another device: "))
        for number in 1...8 {
            #expect(text[screen + 1 + number].hasPrefix("device-\(number)  o"), "\(text)")
        }
        #expect(text[screen + 10] == "All devices go online and sync.", "\(text)")
        #expect(text[screen + 11].hasPrefix("Equal: 8 devices and the server have the same "), "\(text)")
        #expect(screen + 12 == text.count, "\(text)")
    }

    @Test func wrongOptionsAreRefused() async throws {
        let folder = try TestFolder()
        for arguments in [
            ["--devices", "1"], ["--server", "there"], ["--token-file", "t"], ["--schema", "none.yaml"],
        ] {
            let run = try await CommandRun.run(arguments, of: .demo, in: folder)
            #expect(run.code == 64, "\(arguments): \(run.errors)")
        }
        let help = try await CommandRun.run("--help", of: .demo, in: folder)
        #expect(help.code == 0 && help.output.contains("--seconds S"))
    }
}
