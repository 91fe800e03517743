import Foundation
import ProgramRun
import Testing

/// The scripts that build a program and run it, with stand-ins of Swift, of the packages of the system and of the program.
@Suite(.timeLimit(.minutes(1))) struct StartScriptTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The folder of a copy of Weir that has scripts and settings alone.
    private let folder: TestFolder

    init() throws {
        folder = try TestFolder()
        for name in ["deploy", "bin"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(name)", withIntermediateDirectories: false)
        }
        for name in ["demo", "run", "libraries"] {
            try FileManager.default.copyItem(
                atPath: Self.root.appending(path: "deploy/\(name)").path, toPath: "\(folder.path)/deploy/\(name)")
        }
        try tool(
            "swift",
            """
            if [ "$1" = --version ]; then echo "Swift version ${SWIFT_VERSION:-6.2} (stand-in)"; exit; fi
            echo "swift $*" >> calls
            for product; do :; done
            mkdir -p .build/release
            printf '#!/bin/sh\\necho "%s"\\nfor word; do echo "<$word>"; done\\nexit 3\\n' "$product" > ".build/release/$product"
            chmod +x ".build/release/$product"
            """)
        // All packages are installed but those that MISSING names.
        try tool(
            "dpkg-query",
            """
            for package; do :; done
            echo "$package" >> asked
            case " $MISSING " in *" $package "*) exit 1 ;; esac
            echo installed
            """)
        try tool("apt-get", #"echo "apt-get $*" >> calls"#)
        try tool("sudo", #""$@""#)
    }

    private func tool(_ name: String, _ script: String) throws {
        let path = try folder.write("#!/bin/sh\n\(script)\n", to: "bin/\(name)")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
    }

    /// Runs a script from another folder than its own.
    private func run(_ script: String, _ arguments: [String], _ environment: String...) async throws -> CommandRun {
        let path = "PATH=\(folder.path)/bin:/usr/local/bin:/usr/bin:/bin"
        return try await CommandRun.tool(
            [path] + environment + ["bash", "\(folder.path)/deploy/\(script)"] + arguments, in: TestFolder())
    }

    private func lines(of name: String) throws -> [String] {
        let path = "\(folder.path)/\(name)"
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    @Test func everyScriptIsValid() async throws {
        for name in ["demo", "libraries", "run", "test", "test-long"] {
            let check = try await CommandRun.tool(
                ["bash", "-n", Self.root.appending(path: "deploy/\(name)").path], in: folder)
            #expect(check.code == 0 && check.errors == "", "\(name): \(check.errors)")
        }
    }

    @Test(arguments: [
        (script: "demo", product: "weir-demo", given: ["--seconds", "2", "--folder", "a folder"], added: []),
        ("demo", "weir-demo", [], []),
        ("run", "weir", [], ["run", "--schema", "deploy/schema.yaml"]),
        ("run", "weir", ["--data=x", "--clock", "a b"], ["run", "--schema", "deploy/schema.yaml"]),
        ("run", "weir", ["--schema", "s", "--data", "d"], ["run"]),
        ("run", "weir", ["--config=c"], ["run"]),
    ])
    func aScriptBuildsItsProgramAndRunsItWithItsFlags(
        script: String, product: String, given: [String], added: [String]
    ) async throws {
        let run = try await run(script, given)
        #expect(try lines(of: "calls") == ["swift build -c release --product \(product)"])
        let output = run.output.split(separator: "\n").filter { !$0.hasPrefix("deploy: ") }.map(String.init)
        #expect(output == [product] + (added + given).map { "<\($0)>" }, "\(run.output)\(run.errors)")
        // Its exit code is the program's.
        #expect(run.code == 3, "\(run.errors)")
    }

    @Test(arguments: ["WEIR_SCHEMA=s", "WEIR_CONFIG=c", nil])
    func aSchemaThatIsNamedElsewhereIsNotReplacedByTheOneOfTheScript(variable: String?) async throws {
        if variable == nil { try folder.write("schema: s\n", to: "weir.yaml") }
        let run = try await run("run", [], variable ?? "OTHER=x")
        #expect(run.output.hasSuffix("weir\n<run>\n"), "\(run.output)\(run.errors)")
    }

    @Test(arguments: ["demo", "run"]) func aScriptInstallsTheLibrariesThatAreMissing(script: String) async throws {
        let run = try await run(script, [], "MISSING=libyaml-dev libzmq3-dev")
        #expect(run.code == 3, "\(run.errors)")
        let calls = try lines(of: "calls")
        #expect(calls.count == 3, "\(calls)")
        #expect(calls.dropFirst().first?.hasSuffix(" libyaml-dev libzmq3-dev") == true, "\(calls)")
        #expect(run.output.contains("deploy: installing libyaml-dev libzmq3-dev\n"), "\(run.output)")
        // Those of the manifest are among those that it asks for.
        let manifest = try String(contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8)
        let named = Set(manifest.matches(of: /apt: "([^"]+)"/).map { String($0.output.1) })
        let asked = Set(try lines(of: "asked"))
        #expect(named.count > 5 && named.isSubset(of: asked), "\(named.subtracting(asked))")
    }

    @Test(arguments: ["demo", "run"]) func aSwiftThatIsTooOldIsNamedAndNothingIsBuilt(script: String) async throws {
        let run = try await run(script, [], "SWIFT_VERSION=6.1.2")
        #expect(run.code == 1 && run.output.contains("Swift 6.1 is too old"), "\(run.output)\(run.errors)")
        #expect(try lines(of: "calls") == [] && lines(of: "asked") == [])
    }
}
