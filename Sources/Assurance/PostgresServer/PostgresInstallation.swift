import Foundation
import ServerShell

enum PostgresInstallation {
    /// The programs of the newest supported version.
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

    /// The user of servers if the tests run as root, which Postgres rejects.
    static var serverUser: (id: uid_t, group: gid_t)? {
        getpwnam("postgres").map { ($0.pointee.pw_uid, $0.pointee.pw_gid) }
    }

    /// A new folder of the server's user, with a short path, since it will contain a socket.
    static func makeFolder() throws -> String {
        var template = Array("/tmp/weir-pg-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw ServerFailure(reason: "no folder under /tmp: \(String(cString: strerror(errno)))")
        }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if getuid() == 0, let user = serverUser, chown(folder, user.id, user.group) != 0 {
            throw ServerFailure(reason: "\(folder) cannot be owned by postgres")
        }
        return folder
    }
}
