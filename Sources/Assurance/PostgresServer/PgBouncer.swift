import Foundation
import ServerShell
import Synchronization
import ThreadExecutor

/// A PgBouncer in session mode in front of a server, with a Unix socket in a temporary folder.
///
/// A shell that is started with it ends it and removes the folder when the shell's input ends, which happens even if the test
/// process crashes.
package final class PgBouncer: Sendable {
    /// `nil` if it is not installed; its tests are then skipped.
    package static let program: String? = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = ["/usr/sbin"] + path.split(separator: ":").map(String.init)
        return folders.map { "\($0)/pgbouncer" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    package static let skipReason = "no PgBouncer is installed here"

    /// Contains the socket; the `host` for libpq.
    package let folder: String
    private let thread: DedicatedThread
    private let shell: Mutex<ServerShell>

    package func connectionString(database: String = "postgres") -> String {
        "host=\(folder) port=6432 user=weir dbname=\(database)"
    }

    /// - Parameter sessions: the most sessions with the server; more clients wait.
    package static func start(inFrontOf server: PostgresServer, sessions: Int) async throws -> PgBouncer {
        guard let program else { throw ServerFailure(reason: skipReason) }
        let thread = try DedicatedThread(name: "pgbouncer")
        return try await thread.run {
            let folder = try PostgresInstallation.makeFolder()
            let settings = """
                [databases]
                * = host=\(server.folder) port=\(server.port)
                [pgbouncer]
                pool_mode = session
                unix_socket_dir = \(folder)
                listen_port = 6432
                auth_type = trust
                auth_file = \(folder)/users
                max_client_conn = 1000
                default_pool_size = \(sessions)
                """
            // It refuses to run as root.
            let shell = try ServerShell(script, [folder, program, settings], user: "postgres")
            return PgBouncer(folder: folder, thread: thread, shell: shell)
        }
    }

    private init(folder: String, thread: DedicatedThread, shell: consuming sending ServerShell) {
        self.folder = folder
        self.thread = thread
        self.shell = Mutex(shell)
    }

    /// Kills it, which ends its sessions.
    package func kill() async throws { try await command("kill") }

    package func startAgain() async throws { try await command("start") }

    /// Ends it and removes its folder.
    package func end() async {
        await thread.run { shell.withLock { $0.end() } }
        await thread.close()
    }

    private func command(_ command: String) async throws {
        try await thread.run { try shell.withLock { try $0.run(command) } }
    }

    /// Arguments: the folder, the program, and its settings.
    private static let script = """
        folder=$1 program=$2
        cd "$folder" || exit 1
        printf '%s\\n' "$3" > settings
        printf '"weir" ""\\n' > users
        mkfifo words up
        watch() {
            while IFS= read -r line; do
                printf '%s\\n' "$line"
                case $line in *"process up"*)
                    echo up > up
                    exec cat
                esac
            done
            echo ended > up
        }
        begin() {
            watch < words >> log &
            watcher=$!
            "$program" settings > words 2>&1 < /dev/null &
            process=$!
            read -r state < up
            [ "$state" = up ]
        }
        end() {
            kill -KILL "$process"
            wait "$process" "$watcher"
            rm -f .s.PGSQL.*
        }
        answer() { if "$@"; then echo done; else tail -n 30 log | tr '\\n' ' '; echo failed; fi; }
        answer begin
        while read -r command; do
            case $command in
                kill) answer end 2> /dev/null ;;
                start) answer begin ;;
            esac
        done
        end 2> /dev/null
        cd / && rm -rf "$folder"
        """
}
