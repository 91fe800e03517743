import Glibc

/// A new folder for the temporary data of a run.
package final class WorkFolder: Sendable {
    package let path: String

    package init(in parent: String, prefix: String) throws(LoadFailure) {
        var template = Array(("\(parent)/\(prefix)-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw LoadFailure(
                "no folder can be made in \(parent): \(SystemCall.text(errno)); name another with --folder")
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package func remove() throws(LoadFailure) { try Self.remove(path) }

    package static func remove(_ folder: String) throws(LoadFailure) {
        for name in try SystemCall.names(in: folder) {
            let path = folder + "/" + name
            if unlink(path) == 0 { continue }
            guard errno == EISDIR || errno == EPERM else { throw .system("removing \(path)", errno) }
            try remove(path)
        }
        guard rmdir(folder) == 0 else { throw .system("removing \(folder)", errno) }
    }

    package func write(_ text: String, to name: String) throws(LoadFailure) -> String {
        let path = path + "/" + name
        guard let file = fopen(path, "w") else { throw .system("opening \(path)", errno) }
        let failed = fputs(text, file) < 0
        guard fclose(file) == 0, !failed else { throw .system("writing \(path)", errno) }
        return path
    }
}
