import Foundation
import Fuzzing
import Synchronization
import Testing

/// Devices of all protocols edit the same rows, all at one server.
@Suite(.timeLimit(.minutes(10))) struct ProtocolFleetTests {
    @Test(arguments: TestLength.seeds(8, short: 2, long: 30))
    func appsOfAllProtocolsEndEqualAndNoEditIsLostButByThePolicy(seed: UInt64) async throws {
        let folder = try TestFolder()
        try folder.write(ProtocolFleet.schema, to: "schema.yaml")
        let first = try await Self.start(in: folder)
        let server = Server(first)
        try await ProtocolFleet(ports: [first.port], in: folder, seed: seed) {
            #expect(await server.process.kill() == SIGKILL)
            server.replace(with: try await Self.start(in: folder, port: first.port))
        }.play(120)
        #expect(await server.process.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    /// A server whose process is replaced.
    private final class Server: Sendable {
        private let current: Mutex<WeirProcess>

        init(_ process: WeirProcess) { current = Mutex(process) }

        var process: WeirProcess { current.withLock(\.self) }
        func replace(with process: WeirProcess) { current.withLock { $0 = process } }
    }

    private static func start(in folder: TestFolder, port: UInt16 = 0) async throws -> WeirProcess {
        try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder, settings: ["faces": "crud,rest,sqlitenow,tracker"],
            port: port)
    }
}
