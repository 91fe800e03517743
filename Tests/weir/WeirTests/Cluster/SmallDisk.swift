import Foundation
import ServerShell

/// A small disk (tmpfs) for a database, which only root can mount.
final class SmallDisk: Sendable {
    /// Whether this process can mount one.
    static let isPossible: Bool = {
        guard getuid() == 0 else { return false }
        do {
            try SmallDisk(megabytes: 1).end()
            return true
        } catch {
            return false
        }
    }()

    /// Why tests that need one are skipped.
    static let skipReason = "no small disk can be mounted here"

    let path: String
    private var filler: String { path + "/filler" }

    /// Mounts a disk that a user owns.
    init(megabytes: Int, owner: uid_t = 0) throws {
        path = NSTemporaryDirectory() + "weir-disk-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Self.run("mount", ["-t", "tmpfs", "-o", "size=\(megabytes)m,mode=755,uid=\(owner)", "weir", path])
    }

    /// Uses all free space.
    func fill() throws {
        guard FileManager.default.createFile(atPath: filler, contents: nil),
            let handle = FileHandle(forWritingAtPath: filler)
        else { throw POSIXError(.EIO) }
        defer { handle.closeFile() }
        let block = Data(repeating: 1, count: 4096)
        while true {
            do {
                try handle.write(contentsOf: block)
            } catch {
                return
            }
        }
    }

    /// Frees the space that ``fill()`` used.
    func freeSpace() throws { try FileManager.default.removeItem(atPath: filler) }

    /// Unmounts the disk, which must not be in use.
    func end() throws {
        try Self.run("umount", [path])
        try FileManager.default.removeItem(atPath: path)
    }

    private static func run(_ command: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [command] + arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try ProcessStart.run(process)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw POSIXError(.EPERM) }
    }
}
