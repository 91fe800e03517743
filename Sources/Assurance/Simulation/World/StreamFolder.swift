import DeviceModel
import Glibc

/// The stream files of one run, with a folder for each fan-out process that does not continue with its predecessor's.
final class StreamFolder: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The folder of all others.
    let path: String
    private var count = 0
    private var made: Set<String> = []

    /// Makes an empty folder, in memory where there is /dev/shm.
    init() throws(Failure) {
        var template = Array("/dev/shm/weir-simulation-XXXXXX".utf8CString)
        if mkdtemp(&template) == nil {
            template = Array("/tmp/weir-simulation-XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else {
                throw Failure(description: "no folder for stream files: \(String(cString: strerror(errno)))")
            }
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func new() -> String {
        count += 1
        let folder = "\(path)/\(count)"
        mkdir(folder, 0o700)
        made.insert(folder)
        return folder
    }

    /// Copies a folder as a crash leaves it: without what may not have reached the disk.
    func image(of folder: String, partitions: Int, _ random: SeededGenerator) -> String {
        let image = new()
        for partition in 0..<partitions {
            let name = "fanout-\(partition).db"
            // The disk was lost, or an operator removed the stream.
            if random.once(in: 20) { continue }
            copy("\(folder)/\(name)", "\(image)/\(name)")
            if random.once(in: 10) { flip("\(image)/\(name)", random) }
            // Not every transaction has reached the disk.
            let isCut = random.once(in: 3)
            copy("\(folder)/\(name)-wal", "\(image)/\(name)-wal") { isCut ? random.number(0...$0) : $0 }
        }
        return image
    }

    private func copy(_ from: String, _ to: String, _ size: (Int) -> Int = { $0 }) {
        guard let source = fopen(from, "r") else { return }
        defer { fclose(source) }
        guard let target = fopen(to, "w") else { return }
        defer { fclose(target) }
        fseek(source, 0, SEEK_END)
        let count = size(ftell(source))
        rewind(source)
        withUnsafeTemporaryAllocation(byteCount: max(count, 1), alignment: 1) { buffer in
            _ = fwrite(buffer.baseAddress, 1, fread(buffer.baseAddress, 1, count, source), target)
        }
    }

    /// Flips a bit.
    private func flip(_ path: String, _ random: SeededGenerator) {
        guard let file = fopen(path, "r+") else { return }
        defer { fclose(file) }
        fseek(file, 0, SEEK_END)
        let size = ftell(file)
        guard size > 0 else { return }
        let offset = random.number(0...size - 1)
        fseek(file, offset, SEEK_SET)
        let byte = fgetc(file)
        fseek(file, offset, SEEK_SET)
        fputc(byte ^ Int32(1 << random.number(0...7)), file)
    }

    func remove(partitions: Int) {
        for folder in made {
            for partition in 0..<partitions {
                for suffix in ["", "-wal", "-shm"] { unlink("\(folder)/fanout-\(partition).db\(suffix)") }
            }
            rmdir(folder)
        }
        rmdir(path)
    }
}
