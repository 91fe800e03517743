import Foundation
import ServerShell

/// What of Postgres is installed on this machine.
enum PostgresInstallation {
    /// The folder of the newest version that Weir takes.
    static func find() -> String? {
        guard getuid() != 0 || serverUser != nil else { return nil }
        let versions = (14...20).reversed()
        let folders =
            versions.map { "/usr/lib/postgresql/\($0)/bin" }
            + (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return folders.first { folder in
            ["initdb", "pg_ctl", "postgres"].allSatisfy {
                FileManager.default.isExecutableFile(atPath: "\(folder)/\($0)")
            }
        }
    }

    /// The user that servers run as where the tests run as root, which Postgres refuses.
    static var serverUser: (id: uid_t, group: gid_t)? {
        getpwnam("postgres").map { ($0.pointee.pw_uid, $0.pointee.pw_gid) }
    }

    /// A new folder that the server's user owns; its path is short, as those of sockets must be.
    static func makeFolder() throws -> String {
        var template = Array("/tmp/weir-pg-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw ServerFailure(reason: "no folder under /tmp: \(String(cString: strerror(errno)))")
        }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if getuid() == 0, let user = serverUser, chown(folder, user.id, user.group) != 0 {
            throw ServerFailure(reason: "\(folder) cannot be given to postgres")
        }
        return folder
    }
}
