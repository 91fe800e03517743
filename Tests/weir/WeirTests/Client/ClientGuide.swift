import Foundation
import Testing

/// docs/client.md, whose code is that of programs which the tests build.
enum ClientGuide {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Expects each line of the blocks that begin with a comment to be one of these files.
    ///
    /// - Parameter least: how many blocks there are at least.
    static func expectLines(ofBlocks comment: String, in paths: [String], least: Int = 1) throws {
        let known = Set(
            try paths.map(text).joined(separator: "\n").split(separator: "\n")
                .map { $0.trimmingCharacters(in: .whitespaces) })
        let blocks = try text("docs/client.md").components(separatedBy: "```swift\n// \(comment)\n").dropFirst()
        #expect(blocks.count >= least)
        for block in blocks {
            for line in (block.components(separatedBy: "```").first ?? "").split(separator: "\n") {
                #expect(known.contains(line.trimmingCharacters(in: .whitespaces)), "\(line)")
            }
        }
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }
}
