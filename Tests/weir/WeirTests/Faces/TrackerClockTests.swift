import Foundation
import Testing

/// Devices whose `downloadedTill` is the time of an edit, by their own clocks: it says nothing of what others wrote before it.
@Suite(.timeLimit(.minutes(5))) struct TrackerClockTests {
    private func withServer(_ body: (TrackerScene) async throws -> Void) async throws {
        let folder = try TestFolder()
        let weir = try await TrackerScene.start(in: folder)
        try await body(TrackerScene(port: weir.port, folder: folder))
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    /// Another device writes after this one heard of nobody, and its user edits a note after that, before it notes its times.
    private func editDuringSync(_ device: TrackerDevice, _ scene: TrackerScene) async throws {
        try device.create("note", ["title": "own"])
        try await device.sync()
        device.hook = { moment in
            guard moment == 1 else { return }
            try await scene.write("other", "note", "n1", ["title": "other"])
            try device.edit("note", where: "title", is: "own", ["title": "edited"])
        }
        try await device.sync()
        device.hook = nil
        #expect(device.requests.allSatisfy { !$0.hasPrefix("GET /tracker/note") })
    }

    @Test(arguments: [false, true], ["/tracker/devices", "/tracker/note"])
    func anEditDuringASyncHidesNoRowWhereAnAnswerIsLost(countsOwnRows: Bool, path: String) async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            phone.countsOwnRows = countsOwnRows
            try await editDuringSync(phone, scene)
            for _ in 0..<2 {
                phone.losesAnswer = { $0.hasPrefix("GET \(path)") }
                await #expect(throws: TrackerDevice.LostAnswer.self) { try await phone.sync() }
            }
            phone.losesAnswer = { _ in false }
            try await phone.sync()
            #expect(try phone.values("note", "title") == ["edited", "other"])
            try await scene.expectEqual([phone])
            // What it has is not sent again.
            let before = phone.downloadedCount
            try await phone.sync()
            #expect(phone.downloadedCount == before)
        }
    }

    /// Whether the device that starts from the file got it from the server, which then knows what it lacks, or in another way.
    @Test(arguments: [true, false]) func aFileOfSuchADeviceHidesNoRow(isFetched: Bool) async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            for number in 0..<10 { try phone.create("note", ["title": "note \(number)"]) }
            try await editDuringSync(phone, scene)
            #expect(try await phone.uploadDatabase().status == 200)
            if isFetched {
                try await scene.fetchDatabase("tablet")
            } else {
                try phone.fileContent().write(to: URL(filePath: "\(scene.folder.path)/tablet.db"))
            }
            let tablet = try scene.device("tablet")
            try await tablet.sync()
            #expect(try tablet.values("note", "title").contains("other"))
            // The other device's row, and the phone's edit.
            if isFetched { #expect(tablet.downloadedCount == 2) }
            try await scene.expectEqual([phone, tablet])
        }
    }

    /// A device that has rows already does not have those of a file that it only reads.
    @Test func aFileThatADeviceOnlyReadsProvesNothing() async throws {
        try await withServer { scene in
            let (phone, laptop) = (try scene.device("phone"), try scene.device("laptop"))
            try await editDuringSync(laptop, scene)
            for _ in 0..<3 { try await phone.sync() }
            #expect(try await phone.uploadDatabase().status == 200)
            #expect(try await laptop.client.get(DeviceClient.databasePath).status == 200)
            try await laptop.sync()
            #expect(try laptop.values("note", "title") == ["edited", "other"])
            try await scene.expectEqual([phone, laptop])
        }
    }

    /// The download of the file was broken off, and the app begins without it.
    @Test func aFileThatADeviceDoesNotBeginWithProvesNothing() async throws {
        try await withServer { scene in
            struct Killed: Error {}
            let (phone, laptop) = (try scene.device("phone"), try scene.device("laptop"))
            try await scene.write("tablet", "comment", "c1", ["text": "C"])
            try await scene.write("tablet", "note", "n1", ["title": "N"])
            for _ in 0..<3 { try await laptop.sync() }
            #expect(try await laptop.uploadDatabase().status == 200)
            #expect(try await phone.client.get(DeviceClient.databasePath).status == 200)
            phone.hook = { if $0 == 4 { throw Killed() } }
            await #expect(throws: Killed.self) { try await phone.sync() }
            phone.hook = nil
            #expect(try phone.values("note", "title") == ["N"])
            try await phone.sync()
            #expect(try phone.values("comment", "text") == ["C"])
            try await scene.expectEqual([phone, laptop])
        }
    }

    /// The process that answered is killed: what it noted of the doubtful time is not lost.
    @Test func aTimeIsDoubtfulAtEveryGateway() async throws {
        let folder = try TestFolder()
        var after = ""
        for round in 0..<2 {
            let weir = try await TrackerScene.start(in: folder)
            let scene = TrackerScene(port: weir.port, folder: folder)
            let phone = DeviceClient(port: weir.port, headers: ["X-Sync-Id": "abc", "X-Device-Id": "phone"])
            if round == 0 {
                try await scene.write("phone", "note", "own", ["title": "own"])
                _ = try await phone.get("/tracker/devices")
                try await scene.write("laptop", "note", "n1", ["title": "A"])
                after = TrackerDevice.now()
                try await scene.write("laptop", "comment", "c1", ["text": "B"])
            }
            // The answers are lost.
            let devices = try await phone.get("/tracker/devices?after=\(after)").json().array
            #expect(devices.map { $0["installationId"] } == ["laptop"])
            let rows = try await phone.get("/tracker/note?after=\(after)").json().array
            #expect(rows.map { $0["serverId"] } == ["n1"])
            #expect(await weir.kill() != 0)
        }
    }
}
