import Foundation
import Testing

/// A server with the REST face, and what tests do with it.
struct RestScene: FaceScene {
    static let columns = ["category": ["name"], "item": ["title", "category_id"]]
    static let schema = """
        tables:
          item:
            columns:
              title: text
              category_id: { type: text, references: category }
          category:
            columns:
              name: text
        """

    let port: UInt16
    /// Of the devices' files.
    let folder: TestFolder

    static func start(
        in folder: TestFolder, _ settings: [String: String], schema: String = schema
    ) async throws -> WeirProcess {
        try folder.write(schema, to: "schema.yaml")
        return try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder,
            settings: ["faces": "rest", "clock": "sequence(100)"].merging(settings) { $1 })
    }

    func device(_ name: String, owner: String = "abc", port: UInt16? = nil) throws -> RestDevice {
        try RestDevice(name, port: port ?? self.port, owner: owner, in: folder, Self.columns)
    }

    /// The server's rows, as a device without any gets them.
    func rows(_ table: String) async throws -> [JSON] {
        let fresh = DeviceClient(
            port: port, headers: ["X-Sync-Id": "abc", "X-Device-Id": "fresh-\(UUID().uuidString)"])
        let answer = try await fresh.get("/rest/\(table)")
        #expect(answer.status == 200)
        return try answer.json().array.sorted { ($0["id"].string ?? "") < ($1["id"].string ?? "") }
    }

    /// Expects each device to have exactly the server's rows after a sync, and nothing that it has not uploaded.
    func expectEqual(_ devices: [RestDevice]) async throws {
        for device in devices { try await device.sync() }
        for device in devices { try await device.sync() }
        for table in Self.columns.keys.sorted() {
            let rows = try await rows(table)
            for device in devices {
                let records = try device.records(table)
                #expect(records == rows, "\(device.name), \(table)")
            }
        }
    }

    func writeBetweenAnyTwoSteps() async throws {
        var moment = 0
        var isOver = false
        while !isOver {
            let phone = try device("phone-\(moment)")
            let old = try await write("laptop", "category", "shared-\(moment)", ["name": "old"])
            let gone = try await write("laptop", "category", "gone-\(moment)", ["name": "old"])
            try await phone.sync()
            try phone.update("category", "shared-\(moment)", ["name": "phone"])
            try phone.insert("category", "own-\(moment)", ["name": "phone"])
            try phone.insert("item", "item-\(moment)", ["title": "phone", "category_id": "own-\(moment)"])
            let chosen = moment
            var hasWritten = false
            phone.hook = { now in
                guard now == chosen else { return }
                hasWritten = true
                try await self.write("laptop", "category", "shared-\(chosen)", ["name": "laptop"], base: old)
                try await self.write("laptop", "category", "new-\(chosen)", ["name": "laptop"])
                try await self.write("laptop", "category", "gone-\(chosen)", [:], base: gone, isDelete: true)
            }
            try await phone.sync()
            phone.hook = nil
            isOver = !hasWritten
            try await expectEqual([phone])
            // Nothing is lost but by the policy: the phone's edit is the server's, or the user was told.
            let names = try await rows("category").filter { $0["id"].string?.hasSuffix("-\(chosen)") == true }
                .reduce(into: [String: String]()) { $0[$1["id"].string ?? ""] = $1["name"].string }
            #expect(names["own-\(chosen)"] == "phone")
            #expect((names["gone-\(chosen)"] == nil) == hasWritten)
            #expect((names["new-\(chosen)"] == "laptop") == hasWritten)
            let isTold = phone.conflicts == ["shared-\(chosen)"]
            #expect(isTold ? names["shared-\(chosen)"] == "laptop" : phone.conflicts.isEmpty, "\(phone.conflicts)")
            moment += 1
        }
        // Every request has a moment before it and after it.
        #expect(moment > 10)
    }

    func leaveNoHole() async throws {
        let phone = try device("phone")
        try await write("laptop", "category", "c1", ["name": "A"])
        try await phone.sync()
        // Between the phone's download and its upload.
        try phone.insert("category", "own", ["name": "phone"])
        var hasWritten = false
        phone.hook = { _ in
            guard !hasWritten, try phone.row("category", "own")?["Dirty"] == "1", phone.moments == 7 else { return }
            hasWritten = true
            try await self.write("laptop", "category", "c2", ["name": "B"])
        }
        try await phone.sync()
        #expect(hasWritten)
        #expect(try phone.row("category", "c2") == nil)
        phone.hook = nil
        try await phone.sync()
        #expect(try phone.row("category", "c2")?["name"] == "B")
        try await expectEqual([phone])
    }
}
