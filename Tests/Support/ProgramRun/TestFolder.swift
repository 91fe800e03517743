import Foundation

/// A folder that is removed with its last reference.
package final class TestFolder: Sendable {
    package let path: String

    package init() throws {
        path = NSTemporaryDirectory() + "weir-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    /// Writes a file into the folder; its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try text.write(toFile: path + "/" + name, atomically: true, encoding: .utf8)
        return path + "/" + name
    }

    deinit {
        do { try FileManager.default.removeItem(atPath: path) } catch { print("not removed: \(path): \(error)") }
    }
}
