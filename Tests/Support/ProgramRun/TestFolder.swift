import Foundation

/// A folder that is removed with its last reference.
package final class TestFolder: Sendable {
    package let path: String

    package init() throws {
        path = NSTemporaryDirectory() + "weir-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        do { try FileManager.default.removeItem(atPath: path) } catch { print("not removed: \(path): \(error)") }
    }
}
