import Foundation

/// A folder of one test, removed with the last reference to it.
package final class TemporaryFolder: Sendable {
    package let path = FileManager.default.temporaryDirectory.path + "/weir-test-" + UUID().uuidString

    package init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            print("could not remove \(path): \(error)")
        }
    }

    package func file(_ name: String = "test.sqlite") -> String { path + "/" + name }

    package func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
    }

    package func read(_ name: String) throws -> [UInt8] {
        try [UInt8](Data(contentsOf: URL(fileURLWithPath: file(name))))
    }

    package func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: file(name))
    }
}
