import Foundation

/// A run of another program: what it wrote to standard output and standard error, and how it ended.
struct ProgramRun: Sendable {
    enum Ending: Sendable, Equatable {
        case exit(Int32)
        case signal(Int32)
        /// It was killed at its time limit.
        case late
    }

    let output: String
    let ending: Ending
    let duration: Duration

    /// Runs a program and waits for its end.
    ///
    /// - Parameter environment: variables besides those of this process.
    static func run(
        _ path: String, _ arguments: [String], environment: [String: String], limit: Duration
    ) async throws -> ProgramRun {
        // A file, not a pipe: a program that writes more than a pipe holds would wait for a reader.
        let file = FileManager.default.temporaryDirectory.appending(path: "weir-mutants-\(UUID().uuidString)")
        guard FileManager.default.createFile(atPath: file.path, contents: nil) else {
            throw MutatedTree.Problem(description: "\(file.path) cannot be written")
        }
        defer { unlink(file.path) }
        let output = try FileHandle(forWritingTo: file)
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        let (ended, end) = AsyncStream.makeStream(of: Ending.self)
        process.terminationHandler = { process in
            end.yield(
                process.terminationReason == .exit
                    ? .exit(process.terminationStatus) : .signal(process.terminationStatus))
            end.finish()
        }
        let start = ContinuousClock.now
        try process.run()
        let identifier = process.processIdentifier
        let limit = Task {
            do { try await Task.sleep(for: limit) } catch { return false }
            kill(identifier, SIGKILL)
            return true
        }
        let ending = await ended.first { _ in true }
        limit.cancel()
        let isLate = await limit.value
        try output.close()
        return ProgramRun(
            output: String(decoding: try Data(contentsOf: file), as: UTF8.self),
            ending: isLate ? .late : ending ?? .late, duration: ContinuousClock.now - start)
    }
}
