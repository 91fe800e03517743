import Foundation

/// A copy of the package in which all mutants are applied, and its build of `weir-simulate`.
struct MutatedTree {
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    /// The package that is copied.
    let package: URL
    /// The folder of the copy and its build; what is there is updated, so that a second build takes less time.
    let scratch: URL

    private var tree: URL { scratch.appending(path: "tree") }

    /// The program, once it is built.
    var program: URL { scratch.appending(path: "build/debug/weir-simulate") }

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
        for path in try files.subpathsOfDirectory(atPath: package.appending(path: "Sources").path) {
            // Some are links to documents.
            let source = package.appending(path: "Sources/\(path)").resolvingSymlinksInPath()
            guard try source.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
            let data = try Data(contentsOf: source)
            if let mutants = byFile[path] {
                left.remove(path)
                let text = try MutatedSource.apply(mutants, to: String(decoding: data, as: UTF8.self))
                try put(Data(text.utf8), "Sources/\(path)")
            } else {
                try put(data, "Sources/\(path)")
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

    /// Builds `weir-simulate` in the copy.
    func build() async throws {
        let arguments = [
            "swift", "build", "--package-path", tree.path, "--scratch-path", scratch.appending(path: "build").path,
            "--product", "weir-simulate",
        ]
        let run = try await ProgramRun.run(
            "/usr/bin/env", arguments, environment: ["WEIR_TARGETS": "Simulation"], limit: .seconds(7200))
        guard run.ending == .exit(0) else {
            let errors = run.output.split(separator: "\n").filter { $0.contains("error:") }
            throw Problem(
                description: "the mutated sources cannot be built:\n"
                    + (errors.isEmpty ? run.output : errors.prefix(40).joined(separator: "\n")))
        }
    }

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
