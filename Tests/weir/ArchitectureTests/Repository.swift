import Foundation
import Testing

/// The package as its files describe it.
struct Repository {
    /// A call in Package.swift that declares a target: `library("Pipeline/Ingest", ["ChangeLog", …])`.
    struct DeclaredTarget: Hashable {
        /// The path under `Sources` or `Tests`.
        let path: String
        let isTest: Bool
        let dependencies: Set<String>

        /// The module.
        var name: String { String(path.split(separator: "/").last ?? "") }

        /// The first folder of the path; `weir` for the program.
        var folder: String { String(path.split(separator: "/").first ?? "") }
    }

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    let targets: [DeclaredTarget]

    /// The targets under `Sources`.
    var sources: [DeclaredTarget] { targets.filter { !$0.isTest } }

    /// Reads Package.swift.
    init() throws { try self.init(manifest: Self.text(of: "Package.swift")) }

    init(manifest: String) throws {
        let call =
            /\b(library|program|systemLibrary|cLibrary|tests|support|cSupport)\(\s*"([^"]+)"(?:,\s*\[([^\]]*)\])?/
        let code = manifest.split(separator: "\n").filter { !$0.contains(/^\s*\/\//) }.joined(separator: "\n")
        targets = code.matches(of: call).map { match in
            DeclaredTarget(
                path: String(match.2), isTest: ["tests", "support", "cSupport"].contains(match.1),
                dependencies: Set((match.3 ?? "").matches(of: /"([^"]+)"/).map { String($0.1) }))
        }
        try #require(!targets.isEmpty, "Package.swift declares no target in the form that this test reads")
    }

    static func text(of path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The folders directly in a folder.
    static func folders(in path: String) throws -> Set<String> {
        let children = try FileManager.default.contentsOfDirectory(
            at: root.appending(path: path), includingPropertiesForKeys: [.isDirectoryKey])
        return Set(
            try children.filter { try $0.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true }
                .map(\.lastPathComponent))
    }

    /// The Swift files below a folder, by their paths from the root.
    static func texts(below path: String) throws -> [String: String] {
        let files = try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: path).path)
            .filter { $0.hasSuffix(".swift") }.map { "\(path)/\($0)" }
        return Dictionary(uniqueKeysWithValues: try files.map { ($0, try text(of: $0)) })
    }

    /// The modules that a Swift file imports.
    static func imports(of text: String) -> Set<String> {
        let line =
            /^(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)?import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)/
        return Set(text.split(whereSeparator: \.isNewline).compactMap { $0.firstMatch(of: line).map { String($0.1) } })
    }

    /// Everything that a target needs, itself included.
    func closure(of name: String) -> Set<String> {
        var closure: Set<String> = []
        var waiting = [name]
        while let name = waiting.popLast() {
            guard closure.insert(name).inserted else { continue }
            waiting += targets.first { $0.name == name }?.dependencies ?? []
        }
        return closure
    }
}
