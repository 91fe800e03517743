import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Files that were copied, or restored from a backup, with a marker of the installation.
@Suite struct InstallMarkerTests {
    private func attach(_ device: Device, _ server: ContractServer, marker: String? = nil) async throws {
        try await device.attach(server) {
            $0.installMarker = URL(fileURLWithPath: marker ?? device.folder.file() + "-install")
        }
    }

    private func name(_ device: Device) throws -> String {
        try device.rows("SELECT value FROM weir_meta WHERE key = 'knowledge_id'").joined()
    }

    private func synced(_ server: ContractServer) async throws -> Device {
        let device = try await Device()
        try await attach(device, server)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.sync()
        return device
    }

    private func copy(_ device: Device, marker isCopied: Bool = false) async throws -> Device {
        let path = device.folder.file()
        return try await Device(copying: { copy in
            for suffix in ["", "-wal"] + (isCopied ? ["-install"] : []) {
                try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
            }
        })
    }

    @Test func aFileKeepsItsNameWhereItIs() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let name = try name(device)
        for _ in 0..<2 {
            try await device.restart()
            try await attach(device, server)
            #expect(try self.name(device) == name)
        }
    }

    @Test(arguments: [false, true]) func aCopyIsAnotherDeviceWithItsRowsAndItsPendingEdits(isMarkerCopied: Bool)
        async throws
    {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET note = 'pending'")
        let copy = try await copy(device, marker: isMarkerCopied)
        try await attach(copy, server)
        #expect(try name(copy) != name(device))
        let pulls = server.requests.count
        try await copy.weir.sync()
        #expect(server.live == [#"item a {"note":"pending","title":"A"} 2"#])
        #expect(server.requests[pulls...].allSatisfy { $0.continuesFromAVector })
        // Both go on, without meeting each other's numbers.
        try await device.weir.sync()
        for round in 0..<3 {
            for (app, name) in [(device, "one"), (copy, "two")] {
                try app.run("INSERT INTO item VALUES ('\(name)\(round)', '\(name)', NULL)")
                try await app.weir.sync()
            }
        }
        try await device.weir.sync()
        #expect(server.live.count == 7)
        #expect(try device.rows() == copy.rows())
        #expect(try await copy.weir.keptEdits().isEmpty)
        // Once only.
        let name = try name(copy)
        try await copy.restart()
        try await attach(copy, server)
        #expect(try self.name(copy) == name)
    }

    /// Its outcome could be known to the first device alone.
    @Test(arguments: [Fault.lostRequest, .lostAnswer]) func aBatchWithoutOutcomeIsComparedBeforeItIsSentAgain(
        fault: Fault
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET note = 'sent'; INSERT INTO item VALUES ('b', 'B', NULL)")
        var options = Device.options(FaultyTransport(server, fault, at: 0))
        options.installMarker = URL(fileURLWithPath: device.folder.file() + "-install")
        try await device.weir.attach("abc", server: Device.url, options: options)
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        let copy = try await copy(device)
        try await attach(copy, server)
        try await copy.weir.sync()
        #expect(server.live == [#"item a {"note":"sent","title":"A"} 2"#, #"item b {"note":null,"title":"B"} 1"#])
        // The first one repeats its batch.
        try await attach(device, server)
        try await device.weir.sync()
        #expect(try device.rows() == copy.rows())
        #expect(server.live.count == 2)
        #expect(try await copy.weir.keptEdits().isEmpty)
    }

    @Test func theFilesOfOneInstallationShareItsMarker() async throws {
        let server = ContractServer(Device.tables)
        let devices = [try await Device(), try await Device()]
        let marker = devices[0].folder.file() + "-install"
        func attach() async throws -> [String] {
            for device in devices { try await self.attach(device, server, marker: marker) }
            return try devices.map { try name($0) }
        }
        let names = try await attach()
        #expect(try await attach() == names)
        // Both come from a backup.
        try FileManager.default.removeItem(atPath: marker)
        let restored = try await attach()
        #expect(Set(names).isDisjoint(with: restored))
        #expect(try await attach() == restored)
        #expect(Set(restored).count == 2)
    }

    @Test func aDamagedMarkerIsThatOfAnotherInstallation() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let name = try name(device)
        try Data([0xFF, 0xFE, 0x00]).write(to: URL(fileURLWithPath: device.folder.file() + "-install"))
        for _ in 0..<2 {
            try await device.restart()
            try await attach(device, server)
        }
        #expect(try self.name(device) != name)
        try await device.weir.sync()
        #expect(try device.rows() == ["a A -"])
    }

    @Test func aMarkerThatCannotBeWrittenIsAnError() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        await #expect(throws: (any Error).self) { try await attach(device, server, marker: "/nonexistent/marker") }
    }
}
