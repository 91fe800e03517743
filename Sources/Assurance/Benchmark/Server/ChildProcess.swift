import Glibc

/// A program that is started without environment.
enum ChildProcess {
    /// Starts a program, looked for in the folders of `PATH` where its name has no slash.
    ///
    /// - Parameters:
    ///   - output: the output to read, `STDOUT_FILENO` or `STDERR_FILENO`; the other is discarded.
    /// - Returns: the process, and the end of a pipe to read from.
    static func start(
        _ arguments: [String], at path: String? = nil, reading output: Int32
    ) throws(BenchmarkFailure) -> (process: pid_t, output: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .system("pipe", errno) }
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        let other = output == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO
        posix_spawn_file_actions_addopen(&actions, other, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], output)
        posix_spawn_file_actions_addclose(&actions, ends[1])
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
        close(ends[1])
        guard code == 0 else {
            close(ends[0])
            throw .system("starting \(path ?? arguments[0])", code)
        }
        return (process, ends[0])
    }

    /// Waits for the end of a process and returns its status as `waitpid` does: 0 on success.
    static func wait(for process: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }
}
