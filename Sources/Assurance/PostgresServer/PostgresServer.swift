import Foundation
import ServerShell
import Synchronization
import ThreadExecutor

/// A Postgres server in a temporary folder, with a Unix socket in that folder.
///
/// A shell that is started with it stops the server and removes the folder when the shell's input ends, which happens even if
/// this process crashes.
package final class PostgresServer: Sendable {
    /// The folder of `postgres` and its tools; `nil` if Postgres is not installed; its tests are then skipped.
    package static let programs: String? = PostgresInstallation.find()

    package static let skipReason = "no Postgres server is installed here (initdb was not found)"

    /// The server that tests share: each creates its own schema or database.
    package static func shared() async throws -> PostgresServer { try await sharedStart.value }

    private static let sharedStart = Task { try await PostgresServer.start() }

    /// Contains the socket; the `host` for libpq.
    package let folder: String
    /// Part of the socket's name, and the TCP port if the server listens on 127.0.0.1.
    package let port: Int
    private let thread: DedicatedThread
    private let shell: Mutex<ServerShell>

    package func connectionString(database: String = "postgres") -> String {
        "host=\(folder) port=\(port) user=weir dbname=\(database)"
    }

    /// Creates a cluster and starts its server.
    ///
    /// - Parameters:
    ///   - port: on 127.0.0.1; 0: only the socket, with the default port.
    ///   - settings: more settings of the server.
    ///   - setUp: a shell command that runs in the folder before the start, as the server's user.
    package static func start(
        port: Int = 0, settings: [String: String] = [:], setUp: String = "true"
    ) async throws -> PostgresServer {
        guard let programs else { throw ServerFailure(reason: skipReason) }
        let thread = try DedicatedThread(name: "postgres-server")
        return try await thread.run {
            let folder = try PostgresInstallation.makeFolder()
            var all = [
                "unix_socket_directories": folder, "port": "\(port == 0 ? 5432 : port)",
                "listen_addresses": port == 0 ? "" : "127.0.0.1", "fsync": "off", "full_page_writes": "off",
                "max_connections": "800", "shared_buffers": "32MB", "autovacuum": "off",
            ]
            all.merge(settings) { _, new in new }
            let options = all.sorted { $0.key < $1.key }.map { "-c \($0.key)='\($0.value)'" }.joined(separator: " ")
            // Postgres refuses to run as root.
            let shell = try ServerShell(ServerScript.text, [folder, programs, options, setUp], user: "postgres")
            return PostgresServer(folder: folder, port: port == 0 ? 5432 : port, thread: thread, shell: shell)
        }
    }

    /// Starts a server that also listens on a free port of 127.0.0.1, and retries if another process takes the port first.
    package static func startOnNetwork(
        settings: [String: String] = [:], setUp: String = "true"
    ) async throws -> PostgresServer {
        for _ in 0..<4 {
            do {
                return try await start(port: try FreePort.find(), settings: settings, setUp: setUp)
            } catch let failure as ServerFailure where "\(failure)".contains("Address already in use") {
                continue
            }
        }
        return try await start(port: try FreePort.find(), settings: settings, setUp: setUp)
    }

    private init(folder: String, port: Int, thread: DedicatedThread, shell: consuming sending ServerShell) {
        self.folder = folder
        self.port = port
        self.thread = thread
        self.shell = Mutex(shell)
    }

    /// An immediate shutdown, without a checkpoint.
    package func crash() async throws { try await command("crash") }

    /// A fast shutdown, with a checkpoint.
    package func stop() async throws { try await command("stop") }

    /// Kills every process of the server.
    package func kill() async throws { try await command("kill") }

    /// Suspends every process of the server until ``resume()``.
    package func pause() async throws { try await command("pause") }

    package func resume() async throws { try await command("resume") }

    /// With its data.
    package func startAgain() async throws { try await command("start") }

    /// Stops the server and removes its folder.
    package func end() async {
        await thread.run {
            shell.withLock { $0.end() }
            // The server's user empties the folder, but may not remove it where only this process's user writes to /tmp.
            _ = rmdir(folder)
        }
        await thread.close()
    }

    private func command(_ command: String) async throws {
        try await thread.run { try shell.withLock { try $0.run(command) } }
    }
}
