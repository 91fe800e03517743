import Foundation

/// A copy of the package in which all mutants are applied, and its builds of what finds them.
struct MutatedTree {
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    /// The package that is copied.
    let package: URL
    /// The folder of the copy and its build; what is there is updated, so that a second build takes less time.
    let scratch: URL
    /// Whether the simulation is optimised: it is built in more time and plays in less.
    var isOptimized = false

    private var tree: URL { scratch.appending(path: "tree") }

    /// A program, once it is built.
    func program(_ judge: Judge) -> URL {
        scratch.appending(path: "\(judge.folder)/\(optimizes(judge) ? "release" : "debug")/\(judge.program)")
    }

    private func optimizes(_ judge: Judge) -> Bool { isOptimized && judge == .simulation }

    /// Writes the copy; files that are the same as before are not touched.
    func write(_ mutants: [NumberedMutant]) throws {
        let files = FileManager.default
        var written: Set<String> = []
        func put(_ data: Data, _ path: String) throws {
            written.insert(path)
            let target = tree.appending(path: path)
            if files.contents(atPath: target.path) == data { return }
            try files.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            try data.write(to: target)
        }
        let byFile = Dictionary(grouping: mutants, by: \.mutant.file)
        var left = Set(byFile.keys)
        for folder in ["Sources", "Tests"] {
            for path in try files.subpathsOfDirectory(atPath: package.appending(path: folder).path) {
                // Some are links to documents.
                let source = package.appending(path: "\(folder)/\(path)").resolvingSymlinksInPath()
                guard try source.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
                var data = try Data(contentsOf: source)
                if folder == "Sources", let mutants = byFile[path] {
                    left.remove(path)
                    data = Data(try MutatedSource.apply(mutants, to: String(decoding: data, as: UTF8.self)).utf8)
                }
                try put(data, "\(folder)/\(path)")
            }
        }
        if let file = left.first { throw Problem(description: "mutants name the file \(file), which does not exist") }
        try put(Data(Self.mutation.utf8), "Sources/Mutation/Mutation.swift")
        let manifest = try String(contentsOf: package.appending(path: "Package.swift"), encoding: .utf8)
        let modules = Set(mutants.map(\.mutant.module)).sorted().map { "\"\($0)\"" }.joined(separator: ", ")
        try put(Data((manifest + Self.addition(modules)).utf8), "Package.swift")
        for path in try files.subpathsOfDirectory(atPath: tree.path) where !written.contains(path) {
            let file = tree.appending(path: path)
            if try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true {
                try files.removeItem(at: file)
            }
        }
    }

    /// Builds a program in the copy, in a folder of its own: each has other targets.
    func build(_ judge: Judge) async throws {
        let arguments =
            [
                "swift", "build", "--package-path", tree.path, "--scratch-path",
                scratch.appending(path: judge.folder).path,
            ] + judge.product + (optimizes(judge) ? Self.optimized : [])
        let run = try await ProgramRun.run(
            "/usr/bin/env", arguments, environment: ["WEIR_TARGETS": judge.target], limit: .seconds(7200))
        guard run.ending == .exit(0) else {
            let errors = run.output.split(separator: "\n").filter { $0.contains("error:") }
            throw Problem(
                description: "the mutated sources cannot be built:\n"
                    + (errors.isEmpty ? run.output : errors.prefix(40).joined(separator: "\n")))
        }
    }

    /// Assertions stay, since mutants are found by them, too.
    private static let optimized = ["-c", "release", "-Xswiftc", "-assert-config", "-Xswiftc", "Debug"]

    private static let mutation = """
        import Glibc

        package enum Mutation {
            private static let active = getenv("WEIR_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

            package static func isActive(_ number: Int) -> Bool { active == number }
        }

        """

    private static func addition(_ modules: String) -> String {
        """

        package.targets.append(.target(name: "Mutation", path: "Sources/Mutation"))
        for target in package.targets where [\(modules)].contains(target.name) { target.dependencies.append("Mutation") }

        """
    }
}
