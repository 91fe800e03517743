import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// The name by which the server knows a file.
@Suite struct DeviceNameTests {
    private func options(_ device: Device, _ server: any Transport, name: String?) -> SyncOptions {
        var options = Device.options(server)
        options.installMarker = URL(fileURLWithPath: device.folder.file() + "-install")
        options.knowledgeID = name
        return options
    }

    private func attach(_ device: Device, _ server: any Transport, name: String?) async throws {
        try await device.weir.attach("abc", server: Device.url, options: options(device, server, name: name))
    }

    private func removeMarker(_ device: Device) throws {
        try FileManager.default.removeItem(atPath: device.folder.file() + "-install")
    }

    private func names(_ server: ContractServer) -> Set<String> {
        Set(server.state.withLock { $0.rows.values.map(\.creator) })
    }

    @Test func aFileHasTheNameThatTheAppGivesItFirst() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        #expect(try await device.weir.knowledgeID() == nil)
        try await attach(device, server, name: "phone-1")
        #expect(try await device.weir.knowledgeID() == "phone-1")
        try await device.restart()
        try await attach(device, server, name: "phone-2")
        #expect(try await device.weir.knowledgeID() == "phone-1")
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.sync()
        #expect(names(server) == ["phone-1"])
    }

    @Test func aCopyHasTheNameThatTheAppGivesItAndEachNameOnce() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await attach(device, server, name: "phone-1")
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try removeMarker(device)
        try await device.restart()
        try await attach(device, server, name: "phone-2")
        #expect(try await device.weir.knowledgeID() == "phone-2")
        try await device.weir.sync()
        #expect(names(server) == ["phone-2"])
        // Other copies may have these names still.
        var names: Set<String?> = ["phone-1", "phone-2"]
        for name in ["phone-2", "phone-1", "phone-2"] {
            try removeMarker(device)
            try await attach(device, server, name: name)
            #expect(names.insert(try await device.weir.knowledgeID()).inserted)
        }
    }

    @Test(arguments: ["batch_mismatch", "outcome_expired"])
    func aFileThatTheServerTakesForACopyHasTheNameThatTheAppGivesIt(code: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await attach(device, server, name: "phone-1")
        try await device.weir.sync()
        try await attach(device, server, name: "phone-2")
        server.state.withLock { $0.refusal = code }
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.sync()
        #expect(try await device.weir.knowledgeID() == "phone-2")
        #expect(names(server) == ["phone-2"])
        server.state.withLock { $0.refusal = code }
        try device.run("INSERT INTO item VALUES ('b', 'B', NULL)")
        try await device.weir.sync()
        let third = try #require(try await device.weir.knowledgeID())
        #expect(!["phone-1", "phone-2"].contains(third))
        #expect(names(server) == ["phone-2", third])
    }

    @Test func aTokenForAnotherDeviceIsReplacedByOneForTheNewName() async throws {
        let server = ContractServer(Device.tables)
        let transport = ScriptedTransport { request, _ in
            let token = request.headers["authorization"] ?? ""
            let body = String(decoding: request.body, as: UTF8.self)
            if !body.isEmpty, !body.contains(#""knowledgeId":"\#(token.dropFirst(7))""#) {
                return .problem(403, "wrong_device")
            }
            return try await server.send(request)
        }
        let device = try await Device()
        let weir = device.weir
        try await weir.attach("abc", server: Device.url, options: Device.options(transport)) {
            try await weir.knowledgeID() ?? ""
        }
        try await weir.sync()
        server.state.withLock { $0.refusal = "batch_mismatch" }
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        let error = await #expect(throws: SyncError.self) { try await weir.sync() }
        #expect(error?.code == "wrong_device")
        try await weir.sync()
        #expect(server.live.count == 1)
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }
}
