import Dispatch
import Glibc
import LoadTools
import Testing

@Suite struct LoadConnectionTests {
    /// A number that is closed twice may be another thread's by then, which gets the answers to others' requests.
    @Test func aConnectionThatIsRefusedClosesNothingOfOtherThreads() async throws {
        // A port on which nobody listens.
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                #expect(bind(socket, $0, size) == 0 && getsockname(socket, $0, &size) == 0)
            }
        }
        defer { close(socket) }
        let port = UInt16(bigEndian: address.sin_port)
        async let refused = Self.onThread {
            (0..<20_000).count { _ in
                do {
                    _ = try LoadConnection(port: port)
                    return false
                } catch {
                    return true
                }
            }
        }
        async let closed = Self.onThread {
            (0..<100_000).count { _ in
                let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
                return descriptor >= 0 && close(descriptor) == 0
            }
        }
        #expect(await refused == 20_000)
        #expect(await closed == 100_000)
    }

    private static func onThread(_ body: @escaping @Sendable () -> Int) async -> Int {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: body()) }
        }
    }
}
