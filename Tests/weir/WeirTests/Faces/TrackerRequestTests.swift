import Foundation
import Testing

/// Each answer of the tracker's face.
@Suite(.timeLimit(.minutes(5))) struct TrackerRequestTests {
    private func withServer(
        schema: String = TrackerScene.schema, clock: String = "sequence(100)",
        _ body: (TrackerScene, DeviceClient, DeviceClient) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        let weir = try await TrackerScene.start(in: folder, schema: schema, ["clock": clock])
        func client(_ device: String) -> DeviceClient {
            DeviceClient(port: weir.port, headers: ["X-Sync-Id": "abc", "X-Device-Id": device])
        }
        try await body(TrackerScene(port: weir.port, folder: folder), client("phone"), client("laptop"))
        #expect(await weir.stop() == 0)
    }

    private static let note: JSON = [
        "title": "A", "createdOn": "2026-05-01T08:00:00.000001Z", "updatedOn": "2026-05-01T09:00:00+01:00",
    ]

    /// The text of a timeStamp of the test's clock.
    private static func time(_ timeStamp: Int) -> JSON { JSON("1970-01-01T00:00:00.000\(timeStamp)Z") }

    @Test func aDocumentIsWhole() async throws {
        try await withServer { _, phone, laptop in
            let made = try await phone.send("POST", "/tracker/note", Self.note)
            #expect(made.status == 201)
            let answer = try made.json()
            let id = answer["serverId"]
            #expect(
                answer
                    == ["serverId": id, "updatedOn": Self.time(100), "updatedBy": "phone", "deleted": false])
            let got = try await laptop.get("/tracker/note").json()
            let document: JSON = [
                "serverId": id, "title": "A", "createdOn": "2026-05-01T08:00:00.000001Z", "updatedOn": Self.time(100),
                "updatedBy": "phone", "deleted": false,
            ]
            #expect(got == JSON([document.value]))
            // Not those of the device itself.
            #expect(try await phone.get("/tracker/note").json() == [])
            let changed = try await laptop.send("PUT", "/tracker/note/\(id.string ?? "")", ["title": "B"])
            #expect(changed.status == 200)
            #expect(try changed.json()["updatedOn"] == Self.time(101))
            _ = try await phone.get("/tracker/devices")
            let back = try await phone.get("/tracker/note?after=1970-01-01T01:00:00.000100%2B01:00").json()
            #expect(
                back[0] == document.with("title", "B").with("updatedOn", Self.time(101)).with("updatedBy", "laptop"))
        }
    }

    @Test func aRepeatedCreateIsTheSameRow() async throws {
        try await withServer { scene, phone, laptop in
            let first = try await phone.send("POST", "/tracker/note", Self.note)
            // Also with another spelling, and from another device that has the file.
            let other = Self.note.with("updatedOn", "2026-05-01T08:00:00.000000Z").with("serverId", JSON(NSNull()))
            for client in [phone, laptop] {
                let again = try await client.send("POST", "/tracker/note", other)
                #expect(again.status == 201)
                #expect(try again.json() == first.json())
            }
            let id = try #require(try first.json()["serverId"].string)
            // Edited meanwhile: the row is named, and no success of the create.
            _ = try await laptop.send("PUT", "/tracker/note/\(id)", ["title": "B"])
            let edited = try await phone.send("POST", "/tracker/note", Self.note)
            #expect(edited.status == 200)
            #expect(try edited.json()["updatedBy"] == "laptop")
            #expect(try edited.json()["updatedOn"] == Self.time(101))
            // Deleted meanwhile.
            _ = try await laptop.delete("/tracker/note/\(id)")
            let deleted = try await phone.send("POST", "/tracker/note", Self.note)
            #expect(deleted.status == 200)
            #expect(
                try deleted.json()
                    == ["serverId": JSON(id), "updatedOn": Self.time(102), "updatedBy": "laptop", "deleted": true])
            // Other values are another document.
            let second = try await phone.send("POST", "/tracker/note", Self.note.with("title", "C"))
            #expect(try second.json()["serverId"].string != id)
            #expect(try await scene.documents("note").count == 1)
        }
    }

    @Test func aDeletedDocumentStaysDeleted() async throws {
        try await withServer { scene, phone, laptop in
            let id = try #require(try await phone.send("POST", "/tracker/note", Self.note).json()["serverId"].string)
            for _ in 0..<2 {
                let deleted = try await laptop.delete("/tracker/note/\(id)")
                #expect(deleted.status == 200)
                #expect(try deleted.json()["deleted"] == true)
                #expect(try deleted.json()["updatedOn"] == Self.time(101))
            }
            let update = try await phone.send("PUT", "/tracker/note/\(id)", ["title": "B"])
            #expect(update.status == 200)
            #expect(try update.json()["deleted"] == true)
            // A new device gets it, too.
            let fresh = DeviceClient(port: scene.port, headers: ["X-Sync-Id": "abc", "X-Device-Id": "fresh"])
            let rows = try await fresh.get("/tracker/note").json()
            #expect(rows[0]["serverId"].string == id && rows[0]["deleted"] == true)
            // A document that says that it is deleted.
            let second = try await phone.send("POST", "/tracker/note", Self.note.with("title", "C")).json()["serverId"]
            let path = "/tracker/note/\(second.string ?? "")"
            let marked = try await phone.send("PUT", path, ["title": "C", "deleted": true])
            #expect(marked.status == 200)
            #expect(try marked.json()["deleted"] == true)
            #expect(try await scene.documents("note") == [])
        }
    }

    @Test func theLatestEditWinsWhereTheTableSaysSo() async throws {
        let schema = "tables:\n  note:\n    policy: lastWriteWins\n    columns:\n      title: text\n"
        try await withServer(schema: schema, clock: "log-time") { _, phone, laptop in
            let id = try #require(try await phone.send("POST", "/tracker/note", Self.note).json()["serverId"].string)
            let path = "/tracker/note/\(id)"
            let late = try await laptop.send(
                "PUT", path, ["title": "late", "updatedOn": "2026-05-01T10:00:00Z"])
            #expect(late.status == 200)
            let early = try await phone.send(
                "PUT", path, ["title": "early", "updatedOn": "2026-05-01T09:00:00Z"])
            #expect(early.status == 409)
            let problem = try early.json()
            #expect(problem["code"] == "conflict" && problem["record"]["title"] == "late")
            #expect(problem["record"]["updatedOn"] == (try late.json()["updatedOn"]))
            let equal = try await phone.send("PUT", path, ["title": "equal", "updatedOn": "2026-05-01T10:00:00Z"])
            #expect(equal.status == 200)
        }
    }

    /// Defaults that the server filled in come to the device that made the row, too.
    @Test func aColumnThatWasLeftOutComesBack() async throws {
        let schema = "tables:\n  note:\n    columns:\n      title: text\n      color: { type: text, default: red }\n"
        try await withServer(schema: schema, clock: "log-time") { _, phone, _ in
            let made = try await phone.send("POST", "/tracker/note", Self.note)
            #expect(made.status == 201)
            let devices = try await phone.get("/tracker/devices").json()
            #expect(devices.array.map { $0["installationId"] } == ["phone"])
            let rows = try await phone.get("/tracker/note").json()
            #expect(rows[0]["color"] == "red")
            _ = try await phone.get("/tracker/devices")
            let after = try #require(rows[0]["updatedOn"].string)
            #expect(try await phone.get("/tracker/note?after=\(after)").json() == [])
            #expect(try await phone.get("/tracker/devices?after=\(after)").json() == [])
        }
    }

    @Test func tablesComeParentsFirst() async throws {
        try await withServer { _, phone, _ in
            let tables = try await phone.get("/tracker").json()
            #expect(tables == ["note", "comment"])
            #expect(try await phone.send("POST", "/tracker", Self.note).status == 405)
        }
    }

    @Test func devicesAreNamed() async throws {
        try await withServer(clock: "log-time") { scene, phone, laptop in
            let named = try await phone.send("PUT", "/tracker/devices/Ada%27s%20phone", nil as Data?)
            #expect(named.status == 200)
            #expect(try named.json() == ["installationId": "phone", "name": "Ada's phone"])
            // It uploaded nothing.
            #expect(try await laptop.get("/tracker/devices").json() == [])
            let made = try await phone.send("POST", "/tracker/note", Self.note).json()
            let devices = try await laptop.get("/tracker/devices").json()
            #expect(devices.array.count == 1)
            #expect(devices[0]["installationId"] == "phone" && devices[0]["name"] == "Ada's phone")
            #expect((devices[0]["uploadedOn"].string ?? "") >= (made["updatedOn"].string ?? "?"))
            // Not the device itself, and none of another owner.
            #expect(try await phone.get("/tracker/devices").json() == [])
            let other = DeviceClient(port: scene.port, headers: ["X-Sync-Id": "xyz", "X-Device-Id": "phone"])
            #expect(try await other.get("/tracker/devices").json() == [])
            #expect(try await other.get("/tracker/note").json() == [])
            let long = try await phone.send(
                "PUT", "/tracker/devices/" + String(repeating: "x", count: 256), nil as Data?)
            #expect(long.status == 422)
        }
    }

    /// The greatest `updatedOn` of a device's table may be that of an edit by its own clock.
    @Test func aTimeAboveTheFrozenHeadSkipsNothing() async throws {
        try await withServer(clock: "log-time") { scene, phone, _ in
            _ = try await phone.get("/tracker/devices")
            try await scene.write("laptop", "note", "n1", ["title": "A"])
            let after = "?after=2200-01-01T00:00:00Z"
            for _ in 0..<2 {
                // The answers may have been lost.
                let devices = try await phone.get("/tracker/devices" + after).json()
                #expect(devices.array.map { $0["installationId"] } == ["laptop"])
                let rows = try await phone.get("/tracker/note" + after).json()
                #expect(rows.array.map { $0["serverId"] } == ["n1"])
            }
            let newest = try #require(try await phone.get("/tracker/note" + after).json()[0]["updatedOn"].string)
            #expect(try await phone.get("/tracker/note?after=\(newest)").json() == [])
            #expect(try await phone.get("/tracker/note" + after).json() == [])
            #expect(try await phone.get("/tracker/devices" + after).json() == [])
        }
    }

    @Test(arguments: [
        ("POST", "", #"{"title":"A"}"#, 422, "change_refused"),
        (
            "POST", "", #"{"title":"A","createdOn":"2026-05-01","updatedOn":"2026-05-01T08:00:00Z"}"#, 422,
            "change_refused"
        ),
        (
            "POST", "", #"{"title":"A","createdOn":"1969-12-31T23:59:59Z","updatedOn":"2026-05-01T08:00:00Z"}"#, 422,
            "change_refused"
        ),
        (
            "POST", "", #"{"serverId":"x","createdOn":"2026-05-01T08:00:00Z","updatedOn":"2026-05-01T08:00:00Z"}"#, 422,
            "change_refused"
        ),
        (
            "POST", "", #"{"deleted":true,"createdOn":"2026-05-01T08:00:00Z","updatedOn":"2026-05-01T08:00:00Z"}"#, 422,
            "change_refused"
        ),
        ("PUT", "/gone", #"{"title":"A"}"#, 404, "not_found"),
        ("PUT", "/gone", #"{"title":"A","deleted":true}"#, 404, "not_found"),
        ("PUT", "/x", #"{"serverId":"y","title":"A"}"#, 422, "change_refused"),
        ("PUT", "/x", #"{"title":1}"#, 422, "change_refused"),
        ("PUT", "/x", #"{"other":"A"}"#, 422, "change_refused"),
        ("PUT", "/x", #"{"updatedBy":1}"#, 422, "change_refused"),
        ("PUT", "/x", #"{"title":"A","title":"B"}"#, 422, "change_refused"),
        ("PUT", "/x", #"["title"]"#, 422, "change_refused"),
        ("PUT", "/x", #"{"title""#, 400, "malformed_json"),
        ("DELETE", "/gone", "", 404, "not_found"),
    ])
    func aBadRequestIsRefused(method: String, path: String, body: String, status: Int, code: String) async throws {
        try await withServer { scene, phone, _ in
            let answer = try await phone.send(method, "/tracker/note" + path, body.isEmpty ? nil : Data(body.utf8))
            #expect(answer.status == status)
            let problem = try answer.json()
            #expect(problem["code"].string == code)
            #expect(try await scene.documents("note") == [])
        }
    }

    @Test func unknownThingsAreNamed() async throws {
        try await withServer { scene, phone, _ in
            for (path, status) in [
                ("/tracker/other", 404), ("/tracker/note/1/2", 404), ("/tracker/note?after=x", 422),
                ("/tracker/note?after=2026-05-01", 422), ("/tracker/devices?after=0", 422),
                ("/tracker/note?after=2026-05-01T08:00:00Z&after=2026-05-01T08:00:00Z", 422),
                ("/tracker/note/1", 405), ("/tracker/devices/x", 405),
            ] {
                let answer = try await phone.get(path)
                #expect(answer.status == status, "\(path)")
            }
            for (method, path) in [("POST", "other"), ("PUT", "other/1"), ("DELETE", "other/1")] {
                let answer = try await phone.send(method, "/tracker/" + path, method == "DELETE" ? nil : Self.note)
                #expect(answer.status == 404, "\(method) \(path)")
            }
            let nobody = DeviceClient(port: scene.port, headers: ["X-Sync-Id": "abc"])
            let unnamed = try await nobody.get("/tracker/note")
            #expect(unnamed.status == 422)
        }
    }

    @Test func aLargeTableIsStreamed() async throws {
        try await withServer { scene, phone, _ in
            let text = String(repeating: "x", count: 300)
            let client = DeviceClient(port: scene.port, syncID: "abc")
            for start in stride(from: 0, to: 3000, by: 500) {
                let changes = (start..<(start + 500)).map {
                    TestDevice.change("n\($0)", ["title": JSON(text)], table: "note").value
                }
                _ = try await client.sync(["knowledgeId": "laptop", "changes": JSON(changes)])
            }
            let answer = try await phone.get("/tracker/note")
            #expect(answer.headers["transfer-encoding"] == "chunked")
            let rows = try answer.json().array
            #expect(rows.count == 3000)
            let newest = try #require(rows.last?["updatedOn"].string)
            #expect(try await phone.get("/tracker/note?after=\(newest)").json() == [])
        }
    }

    @Test(arguments: [
        ("note:\n    columns:\n      createdon: text\n", "the table note has a column createdon"),
        ("devices:\n    columns:\n      title: text\n", "a table is called devices"),
        ("note:\n    policy: checkBase\n    columns:\n      title: text\n", "the table note has the policy checkBase"),
    ])
    func aSchemaThatCannotBeServedIsRefusedAtStart(table: String, message: String) async throws {
        let folder = try TestFolder()
        try folder.write("tables:\n  " + table, to: "schema.yaml")
        let run = try await CommandRun.run(
            "run", "--schema", folder.path + "/schema.yaml", "--data", folder.path + "/data", "--address",
            "127.0.0.1:0", "--faces", "tracker", in: folder)
        #expect(run.code != 0)
        #expect((run.output + run.errors).contains(message), "\(run.output)\(run.errors)")
    }

    @Test func theWalkThroughIsTrue() async throws {
        let walk = try WalkThrough("tracker")
        try await withServer(schema: walk.schema) { scene, _, _ in
            try await walk.play(port: scene.port, in: scene.folder)
        }
    }
}
