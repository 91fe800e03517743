import Foundation
import Testing

/// The folders of `Sources` and what each may import.
@Suite struct ArchitectureTests {
    private let repository: Repository

    init() throws { repository = try Repository() }

    @Test func targetsDependOnlyOnTheFoldersThatTheirFolderMayImport() {
        for target in repository.sources {
            for name in target.dependencies.sorted() {
                guard let dependency = repository.sources.first(where: { $0.name == name }) else {
                    Issue.record("Package.swift: \(target.path) depends on \(name), which is no target under Sources")
                    continue
                }
                if let objection = FolderRule.objection(to: dependency, from: target) {
                    Issue.record("Package.swift: \(objection)")
                }
            }
        }
    }

    @Test func filesImportOnlyWhatTheirTargetDeclaresAndTheirFolderMayImport() throws {
        let modules = Dictionary(repository.targets.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        for target in repository.targets {
            let root = target.isTest ? "Tests" : "Sources"
            for (file, text) in try Repository.texts(below: "\(root)/\(target.path)") {
                for name in Repository.imports(of: text).sorted() {
                    guard let imported = modules[name] else { continue }
                    #expect(
                        target.dependencies.contains(name),
                        "\(file) imports \(name), which is not among the dependencies of \(target.path) in Package.swift"
                    )
                    if !target.isTest, let objection = FolderRule.objection(to: imported, from: target) {
                        Issue.record("\(file): \(objection)")
                    }
                }
            }
        }
    }

    @Test func everyFolderOnDiskIsADeclaredTarget() throws {
        #expect(Set(repository.targets.map(\.name)).count == repository.targets.count, "two targets have the same name")
        for target in repository.targets {
            let path = "\(target.isTest ? "Tests" : "Sources")/\(target.path)"
            let exists = FileManager.default.fileExists(atPath: Repository.root.appending(path: path).path)
            #expect(exists, "Package.swift declares \(target.path), but there is no folder \(path)")
        }
        let folders = try Repository.folders(in: "Sources")
        #expect(folders == FolderRule.folders, "the folders of Sources are not those of the architecture")
        try expectDeclared(folders.subtracting(["weir"]).map { "Sources/\($0)" }, repository.sources)
        // Fixtures are data, and the browser's driver is Python; the probe is a program, which Package.swift declares without a helper
        // function.
        let exceptions: Set = ["Tests/Support/Browser", "Tests/Support/Fixtures", "Tests/Support/SignalProbe"]
        try expectDeclared(
            try Repository.folders(in: "Tests").map { "Tests/\($0)" }, repository.targets.filter(\.isTest),
            except: exceptions)
    }

    private func expectDeclared(
        _ folders: [String], _ targets: [Repository.DeclaredTarget], except exceptions: Set<String> = []
    ) throws {
        let declared = Set(targets.map(\.path))
        for folder in folders {
            for name in try Repository.folders(in: folder) where !exceptions.contains("\(folder)/\(name)") {
                let path = "\(folder)/\(name)".split(separator: "/").dropFirst().joined(separator: "/")
                #expect(declared.contains(path), "\(folder)/\(name) is no target of Package.swift")
            }
        }
    }

    /// Whoever runs the server installs neither the simulation nor what stands in for Kafka and Postgres.
    @Test func theProgramContainsNothingOfAssuranceButVerificationAndNoMemoryAdapter() throws {
        let closure = repository.closure(of: "weir")
        #expect(closure.contains("Gateway"), "Package.swift declares no program weir")
        let assurance = Set(repository.sources.filter { $0.folder == "Assurance" }.map(\.name))
        #expect(assurance.isSuperset(of: ["Chaos", "Simulation", "Verification"]))
        let unwanted = closure.filter {
            assurance.contains($0) && $0 != "Verification" || $0.hasPrefix("Memory")
        }
        #expect(unwanted.isEmpty, "the program weir contains \(unwanted.sorted().joined(separator: ", "))")
    }

    /// Apps on Apple platforms build it, too, where there is no Glibc.
    @Test func theClientNeedsSQLiteAndFoundationAlone() throws {
        let closure = repository.closure(of: "WeirClient")
        #expect(closure == FolderRule.neededByClient.union(["WeirClient"]))
        for target in repository.sources where closure.contains(target.name) {
            for (file, text) in try Repository.texts(below: "Sources/\(target.path)") {
                let other = Repository.imports(of: text).subtracting(closure).subtracting(["Foundation", "Dispatch"])
                #expect(other.isEmpty, "\(file) imports \(other.sorted().joined(separator: ", "))")
            }
        }
    }

    /// The first code block of the document lists the folders, each at the beginning of a line: `Pipeline/  the stages`.
    @Test func theDocumentNamesTheFoldersOfSources() throws {
        let block = try Repository.text(of: "docs/architecture.md").split(separator: "\n").map(String.init)
            .drop { !$0.hasPrefix("    ") }.prefix { $0.hasPrefix("    ") }
        let named = Set(block.compactMap { $0.firstMatch(of: /^\s*(\w+)\//).map { String($0.1) } })
        #expect(
            named.subtracting(["Sources"]) == (try Repository.folders(in: "Sources")),
            "the first code block of docs/architecture.md names other folders than Sources has")
    }

    /// The document's table of the rule: a folder, or several, and what they may import.
    @Test func theDocumentStatesTheRule() throws {
        let table = try Repository.text(of: "docs/architecture.md").split(separator: "\n").map(String.init)
            .drop { $0 != "| folder | may import |" }.dropFirst(2).prefix { $0.hasPrefix("|") }
        var stated: [String: Set<String>] = [:]
        for row in table {
            let cells = row.split(separator: "|")
            let names = cells.map { Set($0.matches(of: /`(\w+)`/).map { String($0.1) }) }
            try #require(cells.count >= 2, "\(row)")
            for folder in names[0] { stated[folder] = cells[1].contains("everything") ? FolderRule.folders : names[1] }
        }
        #expect(stated == FolderRule.stated, "the table in docs/architecture.md is not the rule in FolderRule.swift")
    }

    @Test func theContributorsGuideNamesFilesThatExist() throws {
        let paths = try Repository.text(of: "docs/contributing.md")
            .matches(of: /`((?:Sources|Tests|deploy|docs)(?:\/[\w.+\/-]+)?)`/).map { String($0.1) }
        #expect(paths.count > 20)
        for path in paths {
            let exists = FileManager.default.fileExists(atPath: Repository.root.appending(path: path).path)
            #expect(exists, "docs/contributing.md names \(path), which does not exist")
        }
    }

    /// The last column of each table of threats names tests.
    @Test func theSecurityDocumentNamesTestsThatExist() throws {
        let rows = try Repository.text(of: "docs/security.md").components(separatedBy: "| threat | answer | test |")
        let table = rows.dropFirst().flatMap { $0.split(separator: "\n").dropFirst().prefix { $0.hasPrefix("|") } }
        let tests = try Repository.texts(below: "Tests").values.joined()
        #expect(table.count > 20)
        for row in table {
            let cell = try #require(row.split(separator: "|").last)
            let names = cell.matches(of: /`(\w+)`/).map { String($0.1) }
            #expect(!names.isEmpty, "\(row)")
            for name in names {
                #expect(tests.contains("func \(name)("), "docs/security.md names \(name), which is no test")
            }
        }
    }

    /// deploy/test runs these one after the other, all others in parallel.
    @Test func targetsWhoseTestsStartProcessesAreListed() throws {
        let script = try Repository.text(of: "deploy/libraries")
        let list = try #require(script.firstMatch(of: /\nwith_processes=\(([^)]*)\)/)).1
        let listed = Set(list.split(whereSeparator: \.isWhitespace).map(String.init))
        let servers: Set = ["KafkaServer", "PostgresServer", "ProgramRun", "ServerShell"]
        for target in repository.targets where target.isTest && target.name.hasSuffix("Tests") {
            let startsOne = try Repository.texts(below: "Tests/\(target.path)").values.contains {
                $0.contains(/=\s*Process\(\)/)
            }
            #expect(
                listed.contains(target.name) == (startsOne || !target.dependencies.isDisjoint(with: servers)),
                "deploy/libraries must list \(target.name) in with_processes exactly if its tests start processes")
        }
    }

    @Test(arguments: [
        ("import Kafka", "Kafka"), ("@testable import Gateway", "Gateway"), ("package import SyncModel", "SyncModel"),
        ("@_spi(Tests) import HTTP", "HTTP"), ("import struct JSON.JSONWriter", "JSON"),
    ]) func findsAnImport(line: String, module: String) {
        #expect(Repository.imports(of: "// import Nothing\n\(line)\nlet text = \"import Nothing\"\n") == [module])
    }

    @Test func objectsToAStageThatImportsAnAdapterAndToAPortThatImportsAStage() throws {
        let repository = try Repository(
            manifest: """
                library("Pipeline/Ingest", ["ChangeLog"]), library("Pipeline/PartitionSupervision"),
                library("Ports/ChangeLog"), library("Client/WeirClient", ["CWeirSQLite"]), library(
                    "Adapters/KafkaChangeLog",
                    [
                        "ChangeLog",
                    ]), cLibrary("CLibraries/CWeirSQLite", defines: ["A"])
                """)
        func objection(_ from: String, to: String) throws -> String? {
            FolderRule.objection(
                to: try #require(repository.sources.first { $0.name == to }),
                from: try #require(repository.sources.first { $0.name == from }))
        }
        #expect(repository.closure(of: "KafkaChangeLog") == ["KafkaChangeLog", "ChangeLog"])
        #expect(try objection("Ingest", to: "ChangeLog") == nil)
        #expect(try objection("Ingest", to: "PartitionSupervision") == nil)
        #expect(
            try objection("Ingest", to: "KafkaChangeLog")
                == "Pipeline/Ingest imports Adapters/KafkaChangeLog, but targets in Pipeline may import CLibraries, Model, "
                + "Platform, Ports only (docs/architecture.md)")
        #expect(try objection("ChangeLog", to: "Ingest") != nil)
        #expect(try objection("CWeirSQLite", to: "ChangeLog") != nil)
        #expect(try objection("KafkaChangeLog", to: "CWeirSQLite") == nil)
        #expect(try objection("WeirClient", to: "CWeirSQLite") == nil)
        #expect(try objection("WeirClient", to: "ChangeLog") != nil)
        #expect(try objection("Ingest", to: "WeirClient") != nil)
    }
}
