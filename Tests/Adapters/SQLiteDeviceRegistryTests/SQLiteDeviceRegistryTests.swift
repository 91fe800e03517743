import DeviceRegistry
import DeviceRegistryConformance
import Foundation
import SQLiteDeviceRegistry
import SyncModel
import Testing

@Suite struct SQLiteDeviceRegistryTests {
    @Test(arguments: DeviceRegistryConformance.cases)
    func conforms(_ test: ConformanceCase) async throws {
        try await inFolder { folder in try await test.run(open(folder)) }
    }

    @Test func keepsItsDevicesOverARestart() async throws {
        try await inFolder { folder in
            let device = Device(caller: SyncID(unchecked: "abc"), knowledgeID: KnowledgeID(unchecked: "k1"))
            let first = try await open(folder)
            try await first.record([DeviceSighting(device, at: 5)])
            await first.close()
            let second = try await open(folder)
            #expect(try await second.device(device)?.lastSeen == 5)
            await second.close()
        }
    }

    @Test func refusesAFileOfAnotherApplicationAndLeavesItAsItIs() async throws {
        try await inFolder { folder in
            let path = folder.appending(path: "devices.db")
            try Data("this is no database, but long enough to be read as one".utf8).write(to: path)
            let before = try Data(contentsOf: path)
            await #expect(throws: DeviceRegistryError.self) { try await open(folder) }
            #expect(try Data(contentsOf: path) == before)
        }
    }

    private func open(_ folder: URL) async throws -> SQLiteDeviceRegistry {
        try await SQLiteDeviceRegistry.open(
            path: folder.appending(path: "devices.db").path,
            maximumPerCaller: DeviceRegistryConformance.maximumPerCaller)
    }

    private func inFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "weir-devices-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let outcome: Result<Void, any Error>
        do {
            try await body(folder)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        try FileManager.default.removeItem(at: folder)
        try outcome.get()
    }
}
