import Foundation
import ServerShell
import Synchronization
import ThreadExecutor

/// A Postgres server of the tests' own, in a temporary folder, reached over a Unix socket in that folder.
///
/// A shell started with it stops the server and removes the folder when its input ends, which it does however the process
/// of the tests ends.
package final class PostgresServer: Sendable {
    /// Where the program `postgres` and its tools are; `nil` where none is installed, and then tests are skipped.
    package static let programs: String? = PostgresInstallation.find()

    /// Why tests that need a server are skipped.
    package static let skipReason = "no Postgres server is installed here (initdb was not found)"

    /// The server that tests share: each makes a schema or database of its own.
    package static func shared() async throws -> PostgresServer { try await sharedStart.value }

    private static let sharedStart = Task { try await PostgresServer.start() }

    /// The folder with the socket; `host` for libpq.
    package let folder: String
    /// The port, which names the socket; also that on 127.0.0.1, where the server listens there.
    package let port: Int
    private let thread: DedicatedThread
    private let shell: Mutex<ServerShell>

    /// A connection string for a database of this server.
    package func connectionString(database: String = "postgres") -> String {
        "host=\(folder) port=\(port) user=weir dbname=\(database)"
    }

    /// Makes a cluster and starts its server.
    ///
    /// - Parameters:
    ///   - port: 0: the socket alone, under Postgres's usual port.
    ///   - settings: more settings of the server.
    ///   - setUp: a shell command that is run in the folder before the start, as the server's user.
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

    /// Makes a cluster whose server listens on a port of 127.0.0.1, too; should somebody else be given the port meanwhile, on
    /// another one.
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

    /// Ends the server as a crash would, without a last checkpoint.
    package func crash() async throws { try await command("crash") }

    /// Ends the server as an operator does, with what it has written.
    package func stop() async throws { try await command("stop") }

    /// Ends every process of the server at once, whatever it is doing.
    package func kill() async throws { try await command("kill") }

    /// Starts the server again, on the data that it has.
    package func startAgain() async throws { try await command("start") }

    /// Ends the server and removes its folder.
    package func end() async {
        await thread.run { shell.withLock { $0.end() } }
        await thread.close()
    }

    private func command(_ command: String) async throws {
        try await thread.run { try shell.withLock { try $0.run(command) } }
    }
}
