import Foundation
import Fuzzing
import Seeded
import Testing

/// Clients of the device tracker's document against a running server.
///
/// Some count a table's own rows for `downloadedTill`, others only those that came: the document leaves it open.
@Suite(.timeLimit(.minutes(5))) struct TrackerFaceTests {
    private func withServer(
        countsOwnRows: Bool = false, _ settings: [String: String] = [:], _ body: (TrackerScene) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        let weir = try await TrackerScene.start(in: folder, settings)
        try await body(TrackerScene(port: weir.port, folder: folder, countsOwnRows: countsOwnRows))
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    @Test(arguments: [false, true]) func devicesExchangeDocuments(countsOwnRows: Bool) async throws {
        try await withServer(countsOwnRows: countsOwnRows) { scene in
            try await scene.exchange(try scene.device("phone"), try scene.device("laptop"))
        }
    }

    @Test(arguments: [false, true]) func anotherDeviceWritesBetweenAnyTwoSteps(countsOwnRows: Bool) async throws {
        try await withServer(countsOwnRows: countsOwnRows) { scene in try await scene.writeBetweenAnyTwoSteps() }
    }

    @Test func aDeviceThatIsAloneAsksForNoRows() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            for number in 0..<3 {
                try phone.create("note", ["title": "\(number)"])
                try await phone.sync()
            }
            try await phone.sync()
            #expect(!phone.requests.contains { $0.hasPrefix("GET /tracker/note") })
            // Another one that has got everything is silent, too.
            let laptop = try scene.device("laptop")
            try await laptop.sync()
            try await laptop.sync()
            let before = laptop.requests.count
            try await laptop.sync()
            #expect(laptop.requests.count == before + 2)
            #expect(laptop.downloadedCount == 3)
        }
    }

    /// Each answer of a sync is lost in turn.
    @Test(arguments: [false, true]) func anAnswerIsLost(countsOwnRows: Bool) async throws {
        try await withServer(countsOwnRows: countsOwnRows) { scene in
            var number = 0
            var isOver = false
            while !isOver {
                let phone = try scene.device("phone-\(number)")
                try await scene.write("laptop", "note", "a-\(number)", ["title": "A"])
                try await phone.sync()
                try phone.edit("note", where: "serverId", is: "a-\(number)", ["title": "phone \(number)"])
                try phone.create("note", ["title": "own-\(number)"])
                try phone.create(
                    "comment",
                    ["text": "own", "note_id": phone.reference(to: "note", where: "title", is: "own-\(number)")])
                try await scene.write(
                    "laptop", "comment", "b-\(number)", ["text": "B", "note_id": JSON("a-\(number)")])
                try await scene.write("laptop", "note", "c-\(number)", ["title": "C"])
                var count = 0
                let chosen = number
                var isLost = false
                phone.losesAnswer = { _ in
                    defer { count += 1 }
                    if count == chosen { isLost = true }
                    return count == chosen
                }
                do { try await phone.sync() } catch is TrackerDevice.LostAnswer {}
                phone.losesAnswer = { _ in false }
                // Before the repeat the user goes on.
                try phone.edit("note", where: "title", is: "own-\(number)", ["title": "edited-\(number)"])
                try await scene.write("laptop", "note", "d-\(number)", ["title": "D"])
                try await scene.expectEqual([phone])
                let titles = try phone.values("note", "title")
                #expect(titles.filter { $0 == "edited-\(chosen)" }.count == 1, "\(titles)")
                #expect(titles.contains("phone \(chosen)"))
                isOver = !isLost
                number += 1
            }
            #expect(number > 7)
        }
    }

    /// The table that was not downloaded has rows below the greatest `downloadedTill`.
    @Test func aDeviceThatIsKilledBetweenTwoTablesGetsTheSecond() async throws {
        try await withServer { scene in
            struct Killed: Error {}
            let phone = try scene.device("phone")
            try await scene.write("laptop", "comment", "c1", ["text": "C"])
            try await scene.write("laptop", "note", "n1", ["title": "N"])
            phone.hook = { if $0 == 4 { throw Killed() } }
            await #expect(throws: Killed.self) { try await phone.sync() }
            phone.hook = nil
            #expect(try phone.values("note", "title") == ["N"])
            #expect(try phone.values("comment", "text") == [])
            try await phone.sync()
            #expect(try phone.values("comment", "text") == ["C"])
            try await scene.expectEqual([phone])
        }
    }

    /// The request for devices counts: what is written after it comes with the next one.
    @Test func noTableHasRowsAboveTheFrozenHead() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            try await scene.write("laptop", "note", "n1", ["title": "A"])
            _ = try await phone.request("GET", "/tracker/devices")
            try await scene.write("laptop", "note", "n2", ["title": "B"])
            let frozen = try await phone.request("GET", "/tracker/note").json().array
            #expect(frozen.map { $0["serverId"] } == ["n1"])
            let devices = try await phone.request("GET", "/tracker/devices").json().array
            #expect(devices.map { $0["installationId"] } == ["laptop"])
            let all = try await phone.request("GET", "/tracker/note").json().array
            #expect(all.map { $0["serverId"] } == ["n1", "n2"])
        }
    }

    /// The third device begins with another one's file.
    @Test func aThirdDeviceGetsWhatAFileLacks() async throws {
        try await withServer { scene in
            let (phone, laptop) = (try scene.device("phone"), try scene.device("laptop"))
            for number in 0..<10 { try phone.create("note", ["title": "\(number)"]) }
            try await phone.sync()
            try await laptop.sync()
            try laptop.create("note", ["title": "laptop"])
            try await laptop.sync()
            try await phone.sync()
            // In the file it is not uploaded yet.
            try phone.create("note", ["title": "late"])
            try FileManager.default.copyItem(atPath: phone.path, toPath: "\(scene.folder.path)/tablet.db")
            try await phone.sync()
            try laptop.edit("note", where: "title", is: "3", ["title": "three"])
            try laptop.delete("note", where: "title", is: "4")
            try await laptop.sync()
            let tablet = try scene.device("tablet")
            try await tablet.sync()
            #expect(tablet.downloadedCount == 3)
            #expect(try tablet.values("note", "title").count == 11)
            try await scene.expectEqual([phone, laptop, tablet])
            #expect(try phone.values("note", "title").filter { $0 == "late" }.count == 1)
        }
    }

    /// The document's own case: a create that is in the file without its `serverId`.
    @Test func aDocumentOfAnOlderFileIsTheSame() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            try phone.create("note", ["title": "A"])
            try phone.create(
                "comment", ["text": "C", "note_id": phone.reference(to: "note", where: "title", is: "A")])
            try FileManager.default.copyItem(atPath: phone.path, toPath: "\(scene.folder.path)/older.db")
            try await phone.sync()
            try FileManager.default.removeItem(atPath: phone.path)
            try FileManager.default.moveItem(atPath: "\(scene.folder.path)/older.db", toPath: phone.path)
            let restored = try scene.device("phone")
            try await restored.sync()
            #expect(try restored.values("note", "title") == ["A"])
            try await scene.expectEqual([restored])
            #expect(try await scene.documents("comment").count == 1)
        }
    }

    @Test func whatIsKnownOfADeviceOutlivesTheProcess() async throws {
        let folder = try TestFolder()
        for round in 0..<2 {
            let weir = try await TrackerScene.start(in: folder)
            let scene = TrackerScene(port: weir.port, folder: folder)
            let phone = try scene.device("phone")
            if round == 0 {
                try await scene.write("laptop", "note", "n1", ["title": "A"])
                try await phone.sync()
                try await phone.sync()
                #expect(phone.downloadedCount == 1)
            } else {
                try phone.create("note", ["title": "B"])
                try await phone.sync()
                #expect(phone.downloadedCount == 0)
            }
            #expect(await weir.stop() == 0)
        }
    }

    /// Devices create, edit, delete, lose answers and are killed; a create is never lost or there twice.
    @Test(arguments: TestLength.seeds(6, short: 2, long: 60)) func devicesWorkAtRandom(seed: UInt64) async throws {
        struct Killed: Error {}
        try await withServer(countsOwnRows: seed % 2 == 1) { scene in
            var random = SeededRandom(seed: seed)
            let devices = try ["phone", "laptop", "tablet"].map { try scene.device($0) }
            var made: [String] = []
            for step in 0..<60 {
                let device = devices[Int.random(in: 0..<3, using: &random)]
                let titles = try device.values("note", "title")
                switch Int.random(in: 0..<10, using: &random) {
                case 0, 1:
                    let parent = try titles.randomElement(using: &random).map {
                        try device.reference(to: "note", where: "title", is: $0)
                    }
                    made.append("c\(step)")
                    try device.create(
                        "comment", ["text": "c\(step)"].merging(parent.map { ["note_id": $0] } ?? [:]) { $1 })
                case 2, 3: try device.create("note", ["title": "n\(step)"])
                case 4:
                    if let title = titles.randomElement(using: &random) {
                        try device.edit("note", where: "title", is: title, ["title": "e\(step)"])
                    }
                case 5:
                    if let title = titles.randomElement(using: &random) {
                        try device.delete("note", where: "title", is: title)
                    }
                case 6:
                    let chosen = Int.random(in: 0..<8, using: &random)
                    var count = 0
                    device.losesAnswer = { _ in
                        defer { count += 1 }
                        return count == chosen
                    }
                    do { try await device.sync() } catch is TrackerDevice.LostAnswer {}
                    device.losesAnswer = { _ in false }
                case 7:
                    let chosen = Int.random(in: 0..<10, using: &random)
                    device.hook = { if $0 == chosen { throw Killed() } }
                    do { try await device.sync() } catch is Killed {}
                    device.hook = nil
                default:
                    // The user edits during the sync, just after a device of another kind wrote.
                    let chosen = Int.random(in: 0..<12, using: &random)
                    device.hook = { moment in
                        guard moment == chosen else { return }
                        try await scene.write("other", "note", "o\(step)", ["title": JSON("o\(step)")])
                        try device.create("note", ["title": "d\(step)"])
                    }
                    try await device.sync()
                    device.hook = nil
                }
            }
            try await scene.expectEqual(devices)
            #expect(try devices[0].values("comment", "text") == made.sorted())
        }
    }
}
