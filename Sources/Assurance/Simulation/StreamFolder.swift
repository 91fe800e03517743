import Glibc

/// Where the stream files of one run lie: a folder for each life of a fan-out that does not go on with the one before.
final class StreamFolder: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.

    /// The place for a run's files could not be made or used.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The folder that all others are in.
    let path: String
    private var count = 0
    private var made: Set<String> = []

    /// Makes an empty folder, in memory where the system has such a place.
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

    /// A folder without files.
    func new() -> String {
        count += 1
        let folder = "\(path)/\(count)"
        mkdir(folder, 0o700)
        made.insert(folder)
        return folder
    }

    /// What a crash leaves of a folder: its files as they are, less what the disk may not have had yet.
    func image(of folder: String, partitions: Int, _ dice: SeededGenerator) -> String {
        let image = new()
        for partition in 0..<partitions {
            let name = "fanout-\(partition).db"
            // The machine lost its disk, or an operator threw the stream away.
            if dice.once(in: 20) { continue }
            copy("\(folder)/\(name)", "\(image)/\(name)")
            if dice.once(in: 10) { flip("\(image)/\(name)", dice) }
            // Not every transaction has reached the disk.
            let isCut = dice.once(in: 3)
            copy("\(folder)/\(name)-wal", "\(image)/\(name)-wal") { isCut ? dice.number(0...$0) : $0 }
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

    /// Changes a byte.
    private func flip(_ path: String, _ dice: SeededGenerator) {
        guard let file = fopen(path, "r+") else { return }
        defer { fclose(file) }
        fseek(file, 0, SEEK_END)
        let size = ftell(file)
        guard size > 0 else { return }
        let place = dice.number(0...size - 1)
        fseek(file, place, SEEK_SET)
        let byte = fgetc(file)
        fseek(file, place, SEEK_SET)
        fputc(byte ^ Int32(1 << dice.number(0...7)), file)
    }

    /// Removes everything.
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
