import CWeirSQLite
import Glibc

/// What an operator should know and do about a database that cannot be opened.
enum OpenFailure {
    static func explain(_ error: SQLiteError, forWriting: Bool) -> String {
        switch error.code {
        case .cannotOpen: explainCannotOpen(error, forWriting: forWriting)
        case .notADatabase:
            "the file is no SQLite database, or its first bytes are encrypted or damaged; set another path, or move the "
                + "file away to start with an empty database"
        case .corrupt:
            "the database is damaged (\(error.message)); move it away with its -wal and -shm files and restore or rebuild it"
        case .readOnly:
            "the database is read-only; give this process the right to write the file and its folder, where SQLite keeps "
                + "its -wal and -shm files"
        case .busy, .locked:
            "another connection holds the database; stop the other process, or allow a longer busy timeout"
        default: error.message
        }
    }

    private static func explainCannotOpen(_ error: SQLiteError, forWriting: Bool) -> String {
        let folder = folder(of: error.path)
        switch (kind(of: folder), kind(of: error.path)) {
        case (.missing, _):
            return "the folder \(folder) does not exist; create it or correct the path"
        case (.file, _):
            return "\(folder) is a file, not a folder; correct the path"
        case (_, .folder):
            return "the path is a folder; set a file in it"
        case (.folder, .missing) where forWriting:
            // The cause is lost: SQLite retries read-only and keeps the error of that.
            return "the file could not be created; give this process the right to write in the folder \(folder)"
        case (.folder, .missing):
            return "the file does not exist; correct the path, or open it for writing first, which creates it"
        default:
            break
        }
        switch error.systemError {
        case EACCES, EPERM:
            return "permission denied; give this process the right to read and write the file and its folder"
        case 0:
            return error.message
        default:
            return "\(error.message): \(String(cString: strerror(error.systemError)))"
        }
    }

    private enum Kind {
        case missing
        case folder
        case file
        case unknown
    }

    private static func kind(of path: String) -> Kind {
        var status = stat()
        guard stat(path, &status) == 0 else { return errno == ENOENT ? .missing : .unknown }
        return status.st_mode & S_IFMT == S_IFDIR ? .folder : .file
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.utf8.startIndex ? "/" : String(path[..<slash])
    }
}
