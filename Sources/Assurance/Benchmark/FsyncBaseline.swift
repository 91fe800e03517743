import Glibc

/// The baseline of everything durable: appending 4 KiB to a file and waiting until the disk has them.
enum FsyncBaseline {
    /// Milliseconds of each of so many appends.
    static func milliseconds(_ count: Int, in folder: WorkFolder) throws(BenchmarkFailure) -> Samples {
        let path = folder.path + "/fsync"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system("opening \(path)", errno) }
        defer {
            close(descriptor)
            unlink(path)
        }
        let block = [UInt8](repeating: 0x57, count: 4096)
        var times: [Double] = []
        for _ in 0..<count {
            let start = SystemCall.nanoseconds()
            guard write(descriptor, block, block.count) == block.count else { throw .system("writing \(path)", errno) }
            guard fdatasync(descriptor) == 0 else { throw .system("fdatasync", errno) }
            times.append(Double(SystemCall.nanoseconds() - start) / 1e6)
        }
        return Samples(times)
    }
}
