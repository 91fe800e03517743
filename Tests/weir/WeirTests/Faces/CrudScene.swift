import Foundation
import Testing

/// A server with the CRUD face, and what tests do with it.
struct CrudScene {
    // The child is first: its table does not come before its parent's by chance.
    static let schema = """
        tables:
          location:
            policy: lastWriteWins
            columns:
              name: text
              category_id: { type: text, references: category, onDelete: reassign }
          category:
            policy: lastWriteWins
            columns:
              name: { type: text, nullable: false }
        """

    let port: UInt16
    /// Of the devices' files.
    let folder: TestFolder
    var owner = "abc"
    /// Whether devices use several gateways, of which one may read a stream that is a moment older than what another has stored.
    var hasSeveralGateways = false

    static func start(
        in folder: TestFolder, schema: String = schema, _ settings: [String: String] = [:]
    ) async throws -> WeirProcess {
        try folder.write(schema, to: "schema.yaml")
        return try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder, settings: ["faces": "crud"].merging(settings) { $1 })
    }

    func device(_ name: String, owner: String? = nil, port: UInt16? = nil) throws -> CrudDevice {
        try CrudDevice(name, port: port ?? self.port, owner: owner ?? self.owner, in: folder)
    }

    func client(_ device: String, owner: String? = nil, port: UInt16? = nil) -> DeviceClient {
        DeviceClient(port: port ?? self.port, headers: ["X-Sync-Id": owner ?? self.owner, "X-Device-Id": device])
    }

    /// The server's records, by id.
    ///
    /// - Parameter device: the one that is answered, from a stream that has what it wrote; `nil`: a new one.
    func records(_ table: String, as device: CrudDevice? = nil) async throws -> [JSON] {
        try await records(table, by: device?.client ?? client("fresh-\(UUID().uuidString)"))
    }

    private func records(_ table: String, by client: DeviceClient) async throws -> [JSON] {
        let answer = try await client.get("/api/\(table)")
        #expect(answer.status == 200)
        return try answer.json().array.sorted { $0["id"].description < $1["id"].description }
    }

    /// The caller's rows as a client of the client contract gets them, with their timeStamps.
    func rows() async throws -> [JSON] {
        let answer = try await client("reader").post("/v1/pull", ["knowledgeId": "reader"])
        #expect(answer.status == 200)
        return try answer.json()["changes"].array
    }

    /// Expects each device to have exactly the server's records after a sync, and nothing that it has not sent.
    func expectEqual(_ devices: [CrudDevice]) async throws {
        for device in devices { try await device.sync() }
        if hasSeveralGateways { try await waitUntilShownTheSame(devices) }
        for collection in CrudDevice.collections {
            let records = try await records(collection.name)
            for device in devices {
                let shown = try await device.get(collection.name)
                #expect(shown == records, "\(device.name), \(collection.name)")
                #expect(try device.stored(collection.name) == records, "\(device.name), \(collection.name)")
            }
        }
    }

    /// How often devices that are shown different records are compared again.
    private static let maximumComparisons = 60

    /// Waits until devices get the same.
    ///
    /// A difference that stays is left to who compares the records, and says what differs.
    private func waitUntilShownTheSame(_ devices: [CrudDevice]) async throws {
        var knowledge: [UInt16: JSON] = [:]
        for _ in 0..<Self.maximumComparisons {
            if try await areShownTheSame(devices) { return }
            for port in Set(devices.map(\.client.port)) {
                // Answered when there is more, or after a second.
                let request: JSON = ["knowledgeId": "reader", "knowledge": knowledge[port] ?? [], "wait": 1]
                knowledge[port] = try await client("reader", port: port).sync(request, to: "/v1/pull")["knowledge"]
            }
        }
    }

    /// Whether devices, and one that wrote nothing, get the same: each gets at least what it wrote.
    private func areShownTheSame(_ devices: [CrudDevice]) async throws -> Bool {
        let readers = devices.map(\.client) + Set(devices.map(\.client.port)).map { client("reader", port: $0) }
        for collection in CrudDevice.collections {
            let shown = try await records(collection.name, by: client("reader"))
            for reader in readers where try await records(collection.name, by: reader) != shown { return false }
        }
        return true
    }

    /// Expects each location to be in a category that is not deleted.
    func expectNoOrphans() async throws {
        let categories = try await Set(records("category").map(\.["id"].description))
        for location in try await records("location") {
            #expect(categories.contains(location["category_id"].description), "\(location)")
        }
    }

    /// Two devices exchange records, online and offline.
    func exchange(_ phone: CrudDevice, _ laptop: CrudDevice) async throws {
        try await phone.create("category", "home", ["name": "Home"])
        try await phone.create("location", "flat", ["name": "Flat", "category_id": "home"])
        // Another gateway may read a stream that is a moment older than what this device has not written.
        while try await laptop.get("location").isEmpty {}
        #expect(try laptop.stored("location").map { $0["name"] } == ["Flat"])
        laptop.isOnline = false
        laptop.now = 60
        try await laptop.create("category", "work", ["name": "Work"])
        try await laptop.update("location", "flat", ["name": "Studio"])
        laptop.isOnline = true
        try await expectEqual([laptop, phone])
        #expect(try phone.record("location", "flat")?["name"] == "Studio")
        try await phone.delete("category", "home", reassign: "work")
        try await expectEqual([phone, laptop])
        #expect(try laptop.record("location", "flat")?["category_id"] == "work")
        #expect(try laptop.record("category", "home") == nil)
        #expect(phone.conflicts + laptop.conflicts + phone.refused + laptop.refused == [])
        try await expectNoOrphans()
    }

    /// Another device writes at each moment of a sync: new records, edits of what is about to be sent, and deletes.
    ///
    /// - Parameter step: tries one of so many moments.
    func writeBetweenAnyTwoSteps(step: Int = 1) async throws {
        var moment = 0
        var isOver = false
        while !isOver {
            let (chosen, laptop) = (moment, client("laptop"))
            func id(_ name: String) -> String { "\(name)-\(chosen)" }
            func send(_ method: String, _ path: String, _ body: JSON? = nil) async throws {
                var answer = try await laptop.send(method, "/api/" + path, body)
                while answer.status == 503 { answer = try await laptop.send(method, "/api/" + path, body) }
                #expect((200...204).contains(answer.status), "\(method) \(path)")
            }
            let phone = try device(id("phone"))
            for name in ["shared", "gone", "doomed", "kept"] {
                let body: JSON = ["id": JSON(id(name)), "name": "old", "updated_at": "2025-01-01T00:00:00Z"]
                try await send("POST", "category", body)
            }
            let child: JSON = ["id": JSON(id("child")), "name": "old", "category_id": JSON(id("doomed"))]
            try await send("POST", "location", child)
            _ = try await phone.get("category")
            _ = try await phone.get("location")
            phone.isOnline = false
            try await phone.create("category", id("own"), ["name": "phone"])
            try await phone.create("location", id("place"), ["name": "phone", "category_id": JSON(id("own"))])
            try await phone.update("category", id("shared"), ["name": "phone"])
            try await phone.update("category", id("gone"), ["name": "phone"])
            try await phone.delete("category", id("doomed"), reassign: id("kept"))
            phone.isOnline = true
            var hasWritten = false
            phone.hook = { now in
                guard now == chosen else { return }
                hasWritten = true
                try await send("PUT", "category/\(id("shared"))", ["name": "laptop"])
                try await send("POST", "category", ["id": JSON(id("new")), "name": "laptop"])
                try await send("DELETE", "category/\(id("gone"))")
                // A child of a category that is there.
                let isThere = try await laptop.get("/api/category/\(id("doomed"))").status == 200
                let parent = JSON(id(isThere ? "doomed" : "kept"))
                let late: JSON = ["id": JSON(id("late")), "name": "laptop", "category_id": parent]
                try await send("POST", "location", late)
            }
            try await phone.sync()
            phone.hook = nil
            isOver = !hasWritten
            #expect(try phone.pending() == [] && phone.refused == [])
            try await expectEqual([phone])
            try await expectNoOrphans()
            let names = try await records("category").reduce(into: [String: String]()) {
                $0[$1["id"].string ?? ""] = $1["name"].string
            }
            #expect(names[id("own")] == "phone" && names[id("doomed")] == nil)
            #expect((names[id("gone")] == nil) == hasWritten && (names[id("new")] == "laptop") == hasWritten)
            // The laptop's edit is the latest, whenever it comes; the phone's user hears of it where it came first.
            #expect(names[id("shared")] == (hasWritten ? "laptop" : "phone"))
            #expect(phone.conflicts == [] || phone.conflicts == [id("shared")] && hasWritten)
            let child2 = try phone.record("location", id("child"))?["category_id"]
            #expect(child2 == JSON(id("kept")))
            moment += step
        }
        // Every request has a moment before it and after it.
        #expect(moment > 9)
    }
}
