import Foundation
import ServerShell

/// A disk of few bytes for a database, which only root may make.
final class SmallDisk: Sendable {
    /// Whether disks can be made here.
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

    /// Where it is.
    let path: String
    private var filler: String { path + "/filler" }

    /// Makes a disk that belongs to a user.
    init(megabytes: Int, owner: uid_t = 0) throws {
        path = NSTemporaryDirectory() + "weir-disk-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Self.run("mount", ["-t", "tmpfs", "-o", "size=\(megabytes)m,mode=755,uid=\(owner)", "weir", path])
    }

    /// Leaves no room.
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

    /// Gives the room back.
    func makeRoom() throws { try FileManager.default.removeItem(atPath: filler) }

    /// Takes the disk away; nobody uses it any more.
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
