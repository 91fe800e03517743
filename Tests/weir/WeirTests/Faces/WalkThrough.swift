import Foundation
import Testing

/// The requests of a document in docs/faces, with the answers that it shows.
struct WalkThrough {
    /// The schema file.
    let schema: String
    /// Each command, and what it prints.
    private let requests: [(command: String, answer: String)]

    init(_ name: String) throws {
        let text = try Self.text("faces/" + name)
        schema = Self.blocks("yaml", in: text).first?.block ?? ""
        requests = Self.blocks("sh", in: text).map { block, rest in
            let answer = rest.split(separator: "\n").prefix { $0.hasPrefix("    ") }.map { $0.dropFirst(4) }
            return (block, answer.joined())
        }
    }

    private static func text(_ document: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "docs/\(document).md"), encoding: .utf8)
    }

    /// The requests of a document in docs, each in a line of its own.
    static func commands(in document: String) throws -> [String] {
        try text(document).split(separator: "\n").filter { $0.hasPrefix("    curl ") }.map { String($0.dropFirst(4)) }
    }

    /// The blocks of a language, each with the text after it.
    private static func blocks(_ language: String, in text: String) -> [(block: String, rest: Substring)] {
        text.components(separatedBy: "```\(language)\n").dropFirst().map { part in
            let end = part.range(of: "```\n") ?? part.endIndex..<part.endIndex
            return (String(part[..<end.lowerBound]), part[end.upperBound...])
        }
    }

    /// Runs every command against a server, and compares what it prints, but for the server's own times.
    func play(port: UInt16, in folder: TestFolder) async throws {
        #expect(requests.count > 5)
        for (command, answer) in requests {
            let here = command.replacing("localhost:7777", with: "127.0.0.1:\(port)")
            let run = try await CommandRun.tool(["no_proxy=*", "sh", "-c", here], in: folder)
            #expect(run.code == 0 && masked(run.output) == masked(answer), "\(command): \(run.output)")
        }
    }

    /// A text in which times with three decimals have no digits, unless a command names them.
    private func masked(_ text: String) -> String {
        text.replacing(/"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/) { match in
            let sent = match.output.replacing(".000Z", with: "Z")
            return requests.contains { $0.command.contains(sent) } ? String(match.output) : "a time"
        }
    }
}
