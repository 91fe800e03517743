import Glibc

/// Reads certificates and keys.
enum FileBytes {
    /// More than any certificate chain or key has.
    private static let limit = 1 << 20

    /// Reads a file of at most `limit` bytes.
    static func read(_ path: String) throws(HTTPServerError) -> [UInt8] {
        // A pipe without a writer would wait for one.
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard number >= 0 else { throw .unreadableFile(path: path, code: errno) }
        let descriptor = Descriptor(number)
        var status = stat()
        guard fstat(number, &status) == 0 else { throw .unreadableFile(path: path, code: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .unreadableFile(path: path, code: EINVAL) }
        var bytes: [UInt8] = []
        while bytes.count <= limit {
            var piece = [UInt8](repeating: 0, count: 16 << 10)
            let count = piece.withUnsafeMutableBytes { Glibc.read(descriptor.number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .unreadableFile(path: path, code: errno) }
            if count == 0 { return bytes }
            bytes.append(contentsOf: piece[..<count])
        }
        throw .unreadableFile(path: path, code: EFBIG)
    }
}

/// The limit of open files (RLIMIT_NOFILE).
enum DescriptorLimit {
    /// For the rest of the process: logs, databases, connections to other servers.
    private static let reserve = 256

    /// Raises the soft limit to what the connections need, up to the hard limit.
    static func raise(for connections: Int, report: (HTTPServerEvent) -> Void) {
        let needed = rlim_t(connections + reserve)
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < needed
        else { return }
        limit.rlim_cur = min(needed, limit.rlim_max)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur == needed else {
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            report(.fewDescriptors(needed: Int(needed), allowed: Int(clamping: limit.rlim_cur)))
            return
        }
    }
}
