import Commands
import Glibc

/// Why a file could not be read.
package struct FileFault: Error, Sendable, Hashable {
    /// The system's error number; 0 where the file was read and is too large or not text.
    package let code: Int32

    /// What went wrong, in a few words.
    package let message: String

    /// Whether there is no such file.
    package var isAbsent: Bool { code == ENOENT }

    /// Makes a fault from the system's error number or, with 0, from a message of one's own.
    package init(code: Int32, message: String) {
        self.code = code
        self.message = message
    }
}

/// Where values come from, besides defaults: the file, the environment, the flags; the later has precedence.
package struct ConfigurationSources: Sendable {
    /// Reads a file of at most so many bytes.
    package typealias FileReader = @Sendable (_ path: String, _ limit: Int) throws(FileFault) -> [UInt8]

    /// The environment; only the program's variables count.
    package var environment: [String: String]

    /// The flags given, each a key of the schema.
    package var flags: [CommandOptionValue]

    /// The file that is read when `--config` and `WEIR_CONFIG` name none; it may be absent.
    package var defaultFile: String?

    /// Reads the configuration file and the files of secrets.
    package var readFile: FileReader

    /// Puts the sources together.
    package init(
        environment: [String: String] = [:], flags: [CommandOptionValue] = [], defaultFile: String? = nil,
        readFile: @escaping FileReader = ConfigurationSources.contents
    ) {
        self.environment = environment
        self.flags = flags
        self.defaultFile = defaultFile
        self.readFile = readFile
    }

    /// Reads a file of the file system, at most `limit` bytes; blocks, so it belongs into the start of a program.
    @Sendable package static func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .last() }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count <= limit {
            // One byte beyond the limit tells a file that fits from one that does not.
            let room = min(limit + 1 - bytes.count, 64 << 10)
            var code: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
                // The pointer is used within the call alone, and `read` writes no more than `room`.
                var result = 0
                repeat { result = read(descriptor, buffer.baseAddress, room) } while result < 0 && errno == EINTR
                if result < 0 { code = errno }
                count = max(result, 0)
            }
            guard code == 0 else { throw FileFault(code: code, message: String(cString: strerror(code))) }
            if chunk.isEmpty { return bytes }
            bytes += chunk
        }
        throw FileFault(code: 0, message: "the file has more than \(limit) bytes")
    }
}

extension FileFault {
    /// The fault of the system call that failed last.
    fileprivate static func last() -> FileFault {
        let code = errno
        return FileFault(code: code, message: String(cString: strerror(code)))
    }
}
