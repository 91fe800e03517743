import Glibc
import ThreadExecutor

/// Keys in a file, which is read again every few seconds.
///
/// It is not watched: a file that is replaced through a link to another folder, as secrets of Kubernetes are, would not show.
package final class FileKeySource: KeySource {
    /// How long a change of the file may take to be seen.
    package static let period = Duration.seconds(5)
    /// Far more than the largest set has.
    private static let maximumBytes = 1 << 20

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let path: String
    private let format: KeyFormat
    private let thread: DedicatedThread

    package init(_ path: String, _ format: KeyFormat) throws(ThreadStartError) {
        self.path = path
        self.format = format
        thread = try DedicatedThread(name: "keys")
    }

    package var name: String { path }

    package func keys() async throws -> PublishedKeys {
        try await thread.run { [path, format] in
            PublishedKeys(try format.keys(in: try Self.contents(of: path)), maximumAge: Self.period)
        }
    }

    package func close() async { await thread.close() }

    private static func contents(of path: String) throws -> [UInt8] {
        // A pipe without a writer would wait for one.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure() }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure() }
        guard status.st_mode & S_IFMT == S_IFREG else { throw Failure(description: "it is no regular file") }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &piece, piece.count)
            if count < 0 {
                guard errno == EINTR else { throw failure() }
                continue
            }
            if count == 0 { return bytes }
            bytes += piece.prefix(count)
            guard bytes.count <= maximumBytes else {
                throw Failure(description: "the file has more than \(maximumBytes) bytes")
            }
        }
    }

    private static func failure() -> Failure { Failure(description: String(cString: strerror(errno))) }
}
