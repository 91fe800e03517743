import Glibc

/// A program that is started without environment.
package enum ChildProcess {
    /// Starts a program, looked for in the folders of `PATH` where its name has no slash.
    ///
    /// - Parameters:
    ///   - output: the output to read, `STDOUT_FILENO` or `STDERR_FILENO`; the other is discarded.
    /// - Returns: the process, and the end of a pipe to read from.
    package static func start(
        _ arguments: [String], at path: String? = nil, reading output: Int32
    ) throws(LoadFailure) -> (process: pid_t, output: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .system("pipe", errno) }
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
        defer { close(ends[1]) }
        do {
            let process = try spawn(arguments, at: path) { actions in
                let other = output == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO
                posix_spawn_file_actions_addopen(&actions, other, "/dev/null", O_WRONLY, 0)
                posix_spawn_file_actions_adddup2(&actions, ends[1], output)
                posix_spawn_file_actions_addclose(&actions, ends[1])
            }
            return (process, ends[0])
        } catch {
            close(ends[0])
            throw error
        }
    }

    /// Starts a program whose output of both kinds is appended to a file.
    package static func start(
        _ arguments: [String], at path: String? = nil, appendingTo file: String
    ) throws(LoadFailure) -> pid_t {
        try spawn(arguments, at: path) { actions in
            posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file, O_WRONLY | O_CREAT | O_APPEND, 0o644)
            posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        }
    }

    private static func spawn(
        _ arguments: [String], at path: String?, _ connect: (inout posix_spawn_file_actions_t) -> Void
    ) throws(LoadFailure) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        connect(&actions)
        // Threads of the pool block signals, which a child would inherit.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGINT, SIGTERM, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words = arguments.map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var environment: [UnsafeMutablePointer<CChar>?] = [nil]
        var process = pid_t()
        let code = posix_spawnp(&process, path ?? arguments[0], &actions, &attributes, &words, &environment)
        guard code == 0 else { throw .system("starting \(path ?? arguments[0])", code) }
        return process
    }

    /// Waits for the end of a process and returns its status as `waitpid` does: 0 on success.
    package static func wait(for process: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    /// The program `weir` in the folder of this program.
    package static func weirBesideThisProgram() throws(LoadFailure) -> String {
        guard let path = realpath("/proc/self/exe", nil) else { throw .system("realpath of /proc/self/exe", errno) }
        defer { free(path) }
        let own = String(cString: path)
        return own[..<(own.lastIndex(of: "/") ?? own.startIndex)] + "/weir"
    }
}
