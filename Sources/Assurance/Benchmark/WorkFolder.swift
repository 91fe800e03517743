import Glibc

final class WorkFolder: Sendable {
    let path: String

    init(in parent: String) throws(BenchmarkFailure) {
        var template = Array((parent + "/weir-bench-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw BenchmarkFailure(
                "no folder can be made in \(parent): \(SystemCall.text(errno)); name another with --folder")
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func remove() throws(BenchmarkFailure) { try Self.remove(path) }

    static func remove(_ folder: String) throws(BenchmarkFailure) {
        for name in try SystemCall.names(in: folder) {
            let path = folder + "/" + name
            if unlink(path) == 0 { continue }
            guard errno == EISDIR || errno == EPERM else { throw .system("removing \(path)", errno) }
            try remove(path)
        }
        guard rmdir(folder) == 0 else { throw .system("removing \(folder)", errno) }
    }

    func write(_ text: String, to name: String) throws(BenchmarkFailure) -> String {
        let path = path + "/" + name
        guard let file = fopen(path, "w") else { throw .system("opening \(path)", errno) }
        let failed = fputs(text, file) < 0
        guard fclose(file) == 0, !failed else { throw .system("writing \(path)", errno) }
        return path
    }
}
