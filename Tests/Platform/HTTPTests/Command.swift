import Dispatch
import Foundation
import Glibc
import Testing

/// Programs such as curl and openssl, started without Foundation, which was seen to crash when many processes start at once.
enum Command {
    struct SpawnFailure: Error {
        let code: Int32
    }

    /// Runs a program and returns its exit status and output.
    static func run(_ program: String, _ arguments: [String]) async throws -> (status: Int32, output: String) {
        try await withCheckedThrowingContinuation { done in
            // A thread that may block, and not the tests' own pool.
            DispatchQueue(label: program).async {
                done.resume(with: Result { try runAndWait(program, arguments) })
            }
        }
    }

    private static func runAndWait(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
        let output = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Data().write(to: output)
        defer {
            do { try FileManager.default.removeItem(at: output) } catch { Issue.record(error) }
        }
        let child = try spawn(program, arguments) { files in
            posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.path, O_WRONLY, 0)
        }
        let status = try wait(for: child)
        return (status, String(decoding: try Data(contentsOf: output), as: UTF8.self))
    }

    /// Starts a program whose errors are dropped.
    static func spawn(
        _ program: String, _ arguments: [String], redirecting: (inout posix_spawn_file_actions_t) -> Void
    ) throws -> pid_t {
        var files = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&files)
        defer { posix_spawn_file_actions_destroy(&files) }
        redirecting(&files)
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        var texts = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for text in texts { free(text) } }
        var child = pid_t()
        let code = posix_spawnp(&child, program, &files, nil, &texts, environ)
        guard code == 0 else { throw SpawnFailure(code: code) }
        return child
    }

    /// The exit status as the macros of C read it; a program ended by a signal counts as failed.
    @discardableResult
    static func wait(for child: pid_t) throws -> Int32 {
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { throw SpawnFailure(code: errno) }
        }
        return status & 0x7F == 0 ? status >> 8 & 0xFF : -1
    }
}

/// A client over one TLS connection (`openssl s_client`), which stays open until it is released.
final class TLSClient: Sendable {
    private let child: pid_t
    /// One end of a socket pair; the program has the other as input and output.
    private let socket: Int32
    private let queue = DispatchQueue(label: "s_client")

    init(port: UInt16, trusting certificate: String) throws {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Command.SpawnFailure(code: errno)
        }
        defer { close(ends[1]) }
        socket = ends[0]
        let arguments = [
            "s_client", "-connect", "127.0.0.1:\(port)", "-servername", "localhost", "-quiet", "-verify_return_error",
            "-CAfile", certificate,
        ]
        let end = ends[1]
        child = try Command.spawn("openssl", arguments) { files in
            posix_spawn_file_actions_adddup2(&files, end, STDIN_FILENO)
            posix_spawn_file_actions_adddup2(&files, end, STDOUT_FILENO)
        }
    }

    deinit {
        close(socket)
        kill(child, SIGKILL)
        do { try Command.wait(for: child) } catch { Issue.record(error) }
    }

    /// Sends a request, and reads until the response has a text; `false` if the connection ends first.
    func get(_ path: String, until text: String) async -> Bool {
        await withCheckedContinuation { done in
            queue.async { [socket] in
                let request = Array("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
                guard Glibc.send(socket, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
                    return done.resume(returning: false)
                }
                var read: [UInt8] = []
                var piece = [UInt8](repeating: 0, count: 4096)
                while !String(decoding: read, as: UTF8.self).contains(text) {
                    let count = recv(socket, &piece, piece.count, 0)
                    if count <= 0 { return done.resume(returning: false) }
                    read += piece[..<count]
                }
                done.resume(returning: true)
            }
        }
    }
}
