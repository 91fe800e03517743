import Foundation

/// A shell that runs a server for tests or a chaos run: it reads one command a line, and removes the server when its input ends, which happens
/// however this process ends.
///
/// The script answers its start and each command with the line `done`, or with an error text.
package struct ServerShell: ~Copyable {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// Starts the script and waits until its server is up.
    ///
    /// - Parameters:
    ///   - user: the user for the server if this process runs as root; `nil` for this process's own user.
    ///   - environment: variables in addition to those of this process.
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

    /// Runs a command and waits for its answer.
    package mutating func run(_ command: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
        try expectDone()
    }

    /// Ends the server and waits until it is removed.
    package mutating func end() {
        // Closing the pipe ends the shell; if that fails, a signal does.
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

/// A failed command of a server.
package struct ServerFailure: Error, CustomStringConvertible {
    package let description: String

    package init(reason: String) { description = reason }
}
