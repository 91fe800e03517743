import Foundation
import Testing

/// A server with the tracker's face, and what tests do with it.
struct TrackerScene: FaceScene {
    static let collections = [
        TrackerDevice.Collection(name: "note", columns: ["title"]),
        TrackerDevice.Collection(name: "comment", columns: ["text", "note_id"], reference: "note_id"),
    ]
    // The child is first: devices find out the order.
    static let schema = """
        tables:
          comment:
            columns:
              text: text
              note_id: { type: text, references: note }
          note:
            columns:
              title: text
        """

    let port: UInt16
    /// Of the devices' files.
    let folder: TestFolder
    var countsOwnRows = false

    static func start(
        in folder: TestFolder, schema: String = schema, _ settings: [String: String] = [:]
    ) async throws -> WeirProcess {
        try folder.write(schema, to: "schema.yaml")
        return try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder, settings: ["faces": "tracker"].merging(settings) { $1 })
    }

    func device(_ name: String, owner: String = "abc", port: UInt16? = nil) throws -> TrackerDevice {
        let device = try TrackerDevice(
            name, port: port ?? self.port, owner: owner, in: folder, Self.collections)
        device.countsOwnRows = countsOwnRows
        return device
    }

    /// The server's documents, as a device without any gets them: `serverId` and columns.
    func documents(_ table: String) async throws -> [JSON] {
        let fresh = DeviceClient(
            port: port, headers: ["X-Sync-Id": "abc", "X-Device-Id": "fresh-\(UUID().uuidString)"])
        let answer = try await fresh.get("/tracker/\(table)")
        #expect(answer.status == 200)
        let columns = Self.collections.first { $0.name == table }?.columns ?? []
        return try answer.json().array.filter { $0["deleted"].bool == false }.map { document in
            columns.reduce(["serverId": document["serverId"]] as JSON) { $0.with($1, document[$1]) }
        }.sortedByText
    }

    /// Expects each device to have exactly the server's documents after some syncs, and nothing that it has not uploaded.
    func expectEqual(_ devices: [TrackerDevice]) async throws {
        for _ in 0..<3 {
            for device in devices { try await device.sync() }
        }
        for collection in Self.collections {
            let documents = try await documents(collection.name)
            for device in devices {
                let own = try device.documents(collection.name)
                #expect(own == documents, "\(device.name), \(collection.name)")
                let isDirty = try device.hasDirtyDocuments
                #expect(!isDirty)
            }
        }
    }

    // MARK: What happens on one machine and on a cluster

    func exchange(_ phone: TrackerDevice, _ laptop: TrackerDevice) async throws {
        try phone.create("note", ["title": "Groceries"])
        try phone.create(
            "comment", ["text": "Milk", "note_id": phone.reference(to: "note", where: "title", is: "Groceries")])
        try await phone.sync()
        try await laptop.sync()
        #expect(try laptop.values("comment", "text") == ["Milk"])
        try laptop.edit("comment", where: "text", is: "Milk", ["text": "Oat milk"])
        try laptop.create("note", ["title": "Work"])
        try await laptop.sync()
        try await phone.sync()
        #expect(try phone.values("comment", "text") == ["Oat milk"])
        #expect(try phone.values("note", "title") == ["Groceries", "Work"])
        try phone.delete("comment", where: "text", is: "Oat milk")
        try phone.delete("note", where: "title", is: "Groceries")
        try await phone.sync()
        try await laptop.sync()
        #expect(try laptop.values("note", "title") == ["Work"])
        #expect(try laptop.values("comment", "text") == [])
        try await expectEqual([phone, laptop])
        #expect(phone.overwritten.isEmpty && laptop.overwritten.isEmpty)
    }

    /// A timeStamp as the face writes it.
    static func time(_ timeStamp: Int) -> String {
        let (seconds, fraction) = timeStamp.quotientAndRemainder(dividingBy: 1_000_000)
        let text = ISO8601DateFormatter().string(from: Date(timeIntervalSince1970: Double(seconds)))
        let digits = String(fraction)
        return text.dropLast() + "." + String(repeating: "0", count: 6 - digits.count) + digits + "Z"
    }

    /// Two devices, and a third that logs in from the file of one of them.
    ///
    /// - Parameter ports: of gateways; the devices use one after the other.
    func restore(ports: [UInt16] = []) async throws {
        let ports = ports.isEmpty ? [port] : ports
        let phone = try device("phone", port: ports[0])
        let laptop = try device("laptop", port: ports[ports.count - 1])
        for number in 0..<20 { try phone.create("note", ["title": "phone \(number)"]) }
        try phone.create(
            "comment", ["text": "first", "note_id": phone.reference(to: "note", where: "title", is: "phone 3")])
        try await phone.sync()
        try await laptop.sync()
        try laptop.create("note", ["title": "laptop"])
        try await laptop.sync()
        try await phone.sync()
        // The phone has everything; the laptop's file is older.
        try phone.edit("note", where: "title", is: "laptop", ["title": "of both"])
        try await phone.sync()
        #expect(try await phone.uploadDatabase().status == 200)
        #expect(try await laptop.uploadDatabase().status == 409)
        // What the file lacks: a new row, an edit, a delete.
        try laptop.create("note", ["title": "later"])
        try laptop.edit("note", where: "title", is: "phone 5", ["title": "edited"])
        try laptop.delete("note", where: "title", is: "phone 7")
        try await laptop.sync()
        let stored = try await fetchDatabase("tablet", port: ports[0])
        #expect(stored.headers["content-digest"] == DeviceClient.contentDigest(of: stored.body))
        let (newest, content) = (try phone.newest, try phone.fileContent())
        #expect(stored.headers["downloaded-till"] == newest)
        #expect(stored.body == content)
        let tablet = try device("tablet", port: ports[0])
        #expect(try tablet.values("note", "title").count == 21)
        try await tablet.sync()
        // Three rows are missing; the phone's last edit is of the device that wrote the file.
        #expect(tablet.downloadedCount >= 3 && tablet.downloadedCount < 10, "\(tablet.downloadedCount)")
        try await expectEqual([phone, laptop, tablet])
        #expect(tablet.overwritten.isEmpty)
    }

    /// The stored file becomes that of a new device.
    @discardableResult
    func fetchDatabase(_ name: String, port: UInt16? = nil) async throws -> DeviceClient.Answer {
        let client = DeviceClient(port: port ?? self.port, headers: ["X-Sync-Id": "abc", "X-Device-Id": name])
        let stored = try await client.get(DeviceClient.databasePath)
        #expect(stored.status == 200)
        try stored.body.write(to: URL(filePath: "\(folder.path)/\(name).db"))
        return stored
    }

    /// Another device writes at each moment of a sync: new rows, rows that the device is about to upload, and deletes.
    func writeBetweenAnyTwoSteps() async throws {
        var moment = 0
        var isOver = false
        while !isOver {
            let phone = try device("phone-\(moment)")
            let old = try await write("laptop", "note", "shared-\(moment)", ["title": "old"])
            let gone = try await write("laptop", "note", "gone-\(moment)", ["title": "old"])
            try await phone.sync()
            try phone.edit("note", where: "serverId", is: "shared-\(moment)", ["title": "phone"])
            try phone.create("note", ["title": "own-\(moment)"])
            try phone.create(
                "comment",
                ["text": "own-\(moment)", "note_id": phone.reference(to: "note", where: "title", is: "own-\(moment)")])
            try await write("laptop", "note", "before-\(moment)", ["title": "laptop"])
            try await write(
                "laptop", "comment", "before-\(moment)", ["text": "laptop", "note_id": JSON("before-\(moment)")])
            let chosen = moment
            var hasWritten = false
            phone.hook = { now in
                guard now == chosen else { return }
                hasWritten = true
                try await self.write("laptop", "note", "shared-\(chosen)", ["title": "laptop"], base: old)
                try await self.write("laptop", "note", "new-\(chosen)", ["title": "laptop"])
                try await self.write(
                    "laptop", "comment", "new-\(chosen)", ["text": "laptop", "note_id": JSON("new-\(chosen)")])
                try await self.write("laptop", "note", "gone-\(chosen)", [:], base: gone, isDelete: true)
            }
            try await phone.sync()
            phone.hook = nil
            isOver = !hasWritten
            try await expectEqual([phone])
            let titles = try phone.values("note", "title")
            #expect(titles.contains("own-\(chosen)"))
            #expect(try phone.values("comment", "text").contains("own-\(chosen)"))
            let ids = try phone.values("note", "serverId")
            #expect(ids.contains("before-\(chosen)"))
            #expect(ids.contains("gone-\(chosen)") == !hasWritten)
            #expect(ids.contains("new-\(chosen)") == hasWritten)
            moment += 1
        }
        // Every request has a moment before it or after it.
        #expect(moment > 8)
    }
}
