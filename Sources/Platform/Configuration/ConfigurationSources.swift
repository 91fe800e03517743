import Commands
import Glibc

/// Why a file could not be read.
package struct FileFault: Error, Sendable, Hashable {
    /// The system's error number; 0 where the file was read and is too large or not text.
    package let code: Int32
    package let message: String

    package var isAbsent: Bool { code == ENOENT }

    package init(code: Int32, message: String) {
        self.code = code
        self.message = message
    }
}

/// Where values come from, besides defaults: the file, the environment, the flags; the later has precedence.
package struct ConfigurationSources: Sendable {
    /// Reads a file of at most so many bytes.
    package typealias FileReader = @Sendable (_ path: String, _ limit: Int) throws(FileFault) -> [UInt8]

    /// The environment; variables without the program's prefix are ignored.
    package var environment: [String: String]

    package var flags: [CommandOptionValue]

    /// The file that is read when `--config` and `WEIR_CONFIG` name none; it may be absent.
    package var defaultFile: String?

    package var readFile: FileReader

    package init(
        environment: [String: String] = [:], flags: [CommandOptionValue] = [], defaultFile: String? = nil,
        readFile: @escaping FileReader = ConfigurationSources.contents
    ) {
        self.environment = environment
        self.flags = flags
        self.defaultFile = defaultFile
        self.readFile = readFile
    }

    /// Reads a file of the file system, at most `limit` bytes; blocks, for the start of a program.
    @Sendable package static func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .last() }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count <= limit {
            // One byte beyond the limit shows that a file is too large.
            let count = min(limit + 1 - bytes.count, 64 << 10)
            var code: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                // The pointer is used within the call alone, and `read` writes no more than `count`.
                var result = 0
                repeat { result = read(descriptor, buffer.baseAddress, count) } while result < 0 && errno == EINTR
                if result < 0 { code = errno }
                initialized = max(result, 0)
            }
            guard code == 0 else { throw FileFault(code: code, message: String(cString: strerror(code))) }
            if chunk.isEmpty { return bytes }
            bytes += chunk
        }
        throw FileFault(code: 0, message: "the file has more than \(limit) bytes")
    }
}

extension FileFault {
    /// The failure of the last system call.
    fileprivate static func last() -> FileFault {
        let code = errno
        return FileFault(code: code, message: String(cString: strerror(code)))
    }
}
