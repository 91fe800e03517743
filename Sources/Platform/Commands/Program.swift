import Glibc

extension Command {
    /// Runs a program whose outermost command this is: prints help, version or what is wrong with the call, or runs the
    /// command called.
    ///
    /// - Parameter body: throws ``UsageError`` where a value of the call is wrong.
    package func run(
        _ body: (CommandInvocation<Action>) async throws(UsageError) -> ExitCode
    ) async -> ExitCode {
        switch parse(Array(CommandLine.arguments.dropFirst()), version: Version.text) {
        case .print(let text):
            Output.write(text)
            return .success
        case .refuse(let text):
            Output.complain(text)
            return .usage
        case .invoke(let invocation):
            do {
                return try await body(invocation)
            } catch {
                Output.complain("Error: \(error.message)")
                return .usage
            }
        }
    }
}

extension Command {
    /// Runs a program whose other errors are printed as they are.
    ///
    /// - Parameters:
    ///   - failure: how the program ends with such an error.
    ///   - body: throws ``UsageError`` where a value of the call is wrong.
    package func run(
        failure: ExitCode, _ body: @Sendable (CommandInvocation<Action>) async throws -> ExitCode
    ) async -> ExitCode {
        await run { @Sendable (invocation) throws(UsageError) in
            do {
                return try await body(invocation)
            } catch let error as UsageError {
                throw error
            } catch {
                Output.complain("\(error)")
                return failure
            }
        }
    }
}

/// A value of a call that the program cannot use.
package struct UsageError: Error {
    package let message: String

    package init(_ message: String) { self.message = message }
}

/// The version of Weir's programs.
package enum Version {
    package static let text = "0.1.0"
}

/// Standard output and standard error; a line break is added where the text has none at its end.
package enum Output {
    package static func write(_ text: String) { put(text, STDOUT_FILENO) }

    package static func complain(_ text: String) { put(text, STDERR_FILENO) }

    private static func put(_ text: String, _ descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        if bytes.last != UInt8(ascii: "\n") { bytes.append(UInt8(ascii: "\n")) }
        while !bytes.isEmpty {
            let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            // The reader has closed its end: the error cannot be reported anywhere else.
            guard written > 0 || errno == EINTR else { return }
            if written > 0 { bytes = bytes.dropFirst(written) }
        }
    }
}

/// The environment of the process.
package enum Environment {
    /// Every variable by its name; read it before threads are started that may change the environment.
    package static var variables: [String: String] {
        var variables: [String: String] = [:]
        var entries = environ
        while let entry = entries.pointee {
            let text = String(cString: entry)
            if let equals = text.firstIndex(of: "=") {
                variables[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            entries += 1
        }
        return variables
    }
}
