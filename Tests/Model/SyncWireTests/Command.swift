import Foundation

/// Programs that tests run.
enum Command {
    /// The result of a program.
    struct Result: Sendable {
        let status: Int32
        let errors: String
    }

    /// Runs a program found on the path, or by its own path, and waits for its end without blocking a thread of the
    /// pool.
    ///
    /// - Parameter folder: where its standard error is kept, in a file, which no program can fill up as it can a pipe.
    static func run(_ arguments: [String], in folder: URL) async throws -> Result {
        let errors = folder.appending(path: "errors-\(UUID().uuidString)")
        try Data().write(to: errors)
        let handle = try FileHandle(forWritingTo: errors)
        defer { handle.closeFile() }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = handle
        process.standardError = handle
        let status: Int32 = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        return Result(status: status, errors: try String(contentsOf: errors, encoding: .utf8))
    }

    /// Calls a body with a new folder and removes it afterwards.
    static func withTemporaryFolder<Value: Sendable>(
        _ body: @Sendable (URL) async throws -> Value
    ) async throws -> Value {
        let folder = FileManager.default.temporaryDirectory.appending(path: "weir-wire-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        do {
            let value = try await body(folder)
            try FileManager.default.removeItem(at: folder)
            return value
        } catch {
            try FileManager.default.removeItem(at: folder)
            throw error
        }
    }
}
