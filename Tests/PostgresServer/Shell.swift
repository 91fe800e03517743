import Foundation

/// The shell that has the server: it makes the cluster, starts and stops the server, and takes both away at its end.
struct Shell: ~Copyable {
    private static let script = """
        folder=$1 bin=$2 options=$3 setup=$4
        cd "$folder" || exit 1
        begin() { "$bin/pg_ctl" -D data -l server.log -o "$options" -w -t 120 start > start.log 2>&1 < /dev/null; }
        crash() { "$bin/pg_ctl" -D data -m immediate -w stop > stop.log 2>&1 < /dev/null; }
        answer() { if "$@"; then echo done; else cat start.log server.log | tr '\\n' ' '; echo failed; fi; }
        make() {
            "$bin/initdb" -D data -A trust -U weir -N --no-instructions -E UTF8 --locale=C > start.log 2>&1 < /dev/null \\
                && eval "$setup" && begin
        }
        answer make
        while read -r command; do
            case $command in
                crash) answer crash ;;
                start) answer begin ;;
            esac
        done
        crash
        cd / && rm -rf "$folder"
        """

    /// Foundation was seen to crash when several processes start at once.
    private static let turn = NSLock()

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    init(folder: String, programs: String, settings: [String: String], setUp: String) throws {
        let options = settings.sorted { $0.key < $1.key }.map { "-c \($0.key)='\($0.value)'" }.joined(separator: " ")
        let arguments = ["-c", Self.script, "sh", folder, programs, options, setUp]
        // Postgres refuses to run as root.
        if getuid() == 0 {
            process.executableURL = URL(fileURLWithPath: "/usr/sbin/runuser")
            process.arguments = ["-u", "postgres", "--", "sh"] + arguments
        } else {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = arguments
        }
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        Self.turn.lock()
        defer { Self.turn.unlock() }
        try process.run()
        try expectDone()
    }

    /// Runs a command and waits for its end.
    mutating func run(_ command: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
        try expectDone()
    }

    /// Ends the server and waits until its folder is gone.
    mutating func end() {
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
        guard text == "done" else {
            throw PostgresServerFailure(reason: text.isEmpty ? "the shell of the server ended" : text)
        }
    }
}
