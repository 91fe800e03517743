import Foundation

/// Documents whose code is that of programs which the tests build.
enum ClientGuide {
    /// A block of code in a document.
    struct Block {
        let lines: [String]
        /// What its first line, a comment, names: a file whose lines it shows.
        var file: String? { lines.first.flatMap { $0.hasPrefix("// ") ? String($0.dropFirst(3)) : nil } }
    }

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// What follows a heading, up to the next one; nothing if there is no such heading.
    static func section(_ heading: String, of document: String) throws -> String {
        let parts = try text(document).components(separatedBy: "\n\(heading)\n")
        return parts.count == 2 ? parts[1].components(separatedBy: "\n## ")[0] : ""
    }

    /// The blocks of a language, below a heading if one is given.
    static func blocks(_ language: String, in document: String, below heading: String? = nil) throws -> [Block] {
        let text = try heading.map { try section($0, of: document) } ?? text(document)
        return text.components(separatedBy: "```\(language)\n").dropFirst().map { part in
            Block(lines: part.components(separatedBy: "```")[0].split(separator: "\n").map(String.init))
        }
    }
}
