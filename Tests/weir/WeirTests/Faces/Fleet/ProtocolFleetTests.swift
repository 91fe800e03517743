import Fuzzing
import Testing

/// Devices of all protocols edit the same rows, all at one server.
@Suite(.timeLimit(.minutes(10))) struct ProtocolFleetTests {
    @Test(arguments: TestLength.seeds(8, short: 2, long: 60))
    func appsOfAllProtocolsEndEqualAndNoEditIsLostButByThePolicy(seed: UInt64) async throws {
        let folder = try TestFolder()
        try folder.write(ProtocolFleet.schema, to: "schema.yaml")
        let weir = try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder, settings: ["faces": "crud,rest,sqlitenow,tracker"])
        try await ProtocolFleet(ports: [weir.port], in: folder, seed: seed).play(120)
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}
