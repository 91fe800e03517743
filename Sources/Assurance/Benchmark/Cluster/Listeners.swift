import Glibc

/// Who listens on this machine, as far as this process may look.
enum Listeners {
    /// The processes that listen at one of some ports.
    static func processes(at ports: Set<UInt16>) -> [pid_t] {
        let links = Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap { sockets(at: ports, in: $0) })
        guard !links.isEmpty, let all = names(in: "/proc") else { return [] }
        return all.compactMap { pid_t($0) }.filter { process in
            // Another user's process shows nothing.
            (names(in: "/proc/\(process)/fd") ?? []).contains { descriptor in
                target(of: "/proc/\(process)/fd/\(descriptor)").map(links.contains) ?? false
            }
        }
    }

    /// The sockets in a table of Linux that listen, as links to them are spelled.
    static func sockets(at ports: Set<UInt16>, in path: String) -> [String] {
        let text: String
        do {
            text = try SystemCall.contents(of: path)
        } catch {
            // A machine without that protocol.
            return []
        }
        return text.split(separator: "\n").dropFirst().compactMap { line in
            // Number, local address and port in hexadecimal, the other's, state, six more, the inode.
            let fields = line.split(separator: " ")
            guard fields.count > 9, fields[3] == "0A", let port = fields[1].split(separator: ":").last,
                let number = UInt16(port, radix: 16), ports.contains(number)
            else { return nil }
            return "socket:[\(fields[9])]"
        }
    }

    private static func names(in folder: String) -> [String]? {
        do {
            return try SystemCall.names(in: folder)
        } catch {
            return nil
        }
    }

    private static func target(of link: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = bytes.withUnsafeMutableBytes { buffer in
            readlink(link, buffer.baseAddress!.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }
}
