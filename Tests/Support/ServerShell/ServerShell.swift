import Foundation

/// A shell that has a server of the tests: it makes, starts and stops it, one command a line, and takes it away when its
/// input ends, which it does however the process of the tests ends.
///
/// The script answers each command, and its own start, with the line `done`, or with another one that says what went wrong.
package struct ServerShell: ~Copyable {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// Starts the script and waits until it says that its server is up.
    ///
    /// - Parameters:
    ///   - user: who runs it, where the tests run as root; `nil` for the tests' own user.
    ///   - environment: variables besides those of the tests.
    package init(
        _ script: String, _ arguments: [String], user: String? = nil, environment: [String: String] = [:]
    ) throws {
        let arguments = ["-c", script, "sh"] + arguments
        if getuid() == 0, let user {
            process.executableURL = URL(fileURLWithPath: "/usr/sbin/runuser")
            process.arguments = ["-u", user, "--", "sh"] + arguments
        } else {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = arguments
        }
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try ProcessStart.run(process)
        try expectDone()
    }

    /// Runs a command and waits for its end.
    package mutating func run(_ command: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
        try expectDone()
    }

    /// Ends the server and waits until everything of it is gone.
    package mutating func end() {
        // Whatever has happened to the pipe, its end is the shell's.
        do { try input.fileHandleForWriting.close() } catch { process.terminate() }
        process.waitUntilExit()
    }

    private func expectDone() throws {
        var line = Data()
        while true {
            guard let byte = try output.fileHandleForReading.read(upToCount: 1), let first = byte.first else { break }
            if first == UInt8(ascii: "\n") { break }
            line.append(first)
        }
        let text = String(decoding: line, as: UTF8.self)
        guard text == "done" else { throw ServerFailure(reason: text.isEmpty ? "the shell of the server ended" : text) }
    }
}

/// A server did not do what the tests asked of it.
package struct ServerFailure: Error, CustomStringConvertible {
    /// What it said.
    package let description: String

    /// A failure for a reason.
    package init(reason: String) { description = reason }
}
