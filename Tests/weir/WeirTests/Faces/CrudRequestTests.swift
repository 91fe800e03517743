import Foundation
import Testing

/// Each answer of the CRUD face.
@Suite(.timeLimit(.minutes(5))) struct CrudRequestTests {
    func withServer(
        schema: String = CrudScene.schema, _ settings: [String: String] = [:],
        _ body: (CrudScene, _ phone: DeviceClient, _ laptop: DeviceClient) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        let weir = try await CrudScene.start(in: folder, schema: schema, settings)
        let scene = CrudScene(port: weir.port, folder: folder)
        try await body(scene, scene.client("phone"), scene.client("laptop"))
        #expect(await weir.stop() == 0)
    }

    func expect(
        _ status: Int, _ client: DeviceClient, _ method: String, _ path: String, _ body: JSON? = nil,
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let answer = try await client.send(method, "/api/" + path, body)
        #expect(answer.status == status, "\(method) \(path)", sourceLocation: location)
        return answer.body.isEmpty ? nil : try answer.json()
    }

    func expect(
        _ status: Int, _ code: String, _ client: DeviceClient, _ method: String, _ path: String, _ body: JSON? = nil,
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let problem = try await expect(status, client, method, path, body, location)
        #expect(problem["code"].string == code, sourceLocation: location)
        return problem
    }

    @Test func theWalkThroughIsTrue() async throws {
        let walk = try WalkThrough("crud")
        try await withServer(schema: walk.schema) { scene, _, _ in
            try await walk.play(port: scene.port, in: scene.folder)
        }
    }

    // MARK: Records

    @Test func aRecordHasTheFieldsOfTheDocument() async throws {
        try await withServer { scene, phone, laptop in
            let sent: JSON = [
                "id": "c1", "name": "A", "user_id": "abc", "sync_status": "pendingCreate",
                "created_at": "2020-01-01T00:00:00Z", "updated_at": "2025-05-01T10:00:00.1234+02:00",
            ]
            let made = try await expect(201, phone, "POST", "category", sent)
            #expect(Set(made.object.keys) == ["id", "name", "created_at", "updated_at", "user_id", "sync_status"])
            #expect(made["id"] == "c1" && made["name"] == "A" && made["user_id"] == "abc")
            #expect(made["sync_status"] == "synced" && made["updated_at"] == "2025-05-01T08:00:00.123Z")
            let created = try #require(made["created_at"].string)
            #expect(created.wholeMatch(of: /20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil && created > "2025-05-02")
            #expect(try await expect(200, laptop, "GET", "category/c1") == made)
            // What was shown can be sent back, by any device: the time is equal.
            #expect(try await expect(200, laptop, "PUT", "category/c1", made) == made)
            // Without a time it is now, and the creation's time stays.
            let changed = try await expect(200, laptop, "PUT", "category/c1", ["name": "B", "updated_at": nil])
            #expect(changed["name"] == "B" && changed["created_at"].string == created)
            #expect(try #require(changed["updated_at"].string) >= created)
        }
    }

    @Test func timesAreComparedInMilliseconds() async throws {
        try await withServer { scene, phone, laptop in
            func record(_ name: String, _ time: String) -> JSON {
                ["name": JSON(name), "updated_at": JSON("2025-05-01T08:00:00\(time)Z")]
            }
            _ = try await expect(201, phone, "PUT", "category/c1", record("A", ".123999"))
            let equal = try await expect(200, laptop, "PUT", "category/c1", record("B", ".123"))
            #expect(equal["updated_at"] == "2025-05-01T08:00:00.123Z")
            let older = try await expect(409, "conflict", phone, "PUT", "category/c1", record("C", ".122999"))
            #expect(older["record"] == equal)
            #expect(try await expect(200, laptop, "PUT", "category/c1", record("D", ".124"))["name"] == "D")
            // The device that wrote it last, with a clock that was put back; the record keeps the greatest time.
            let own = try await expect(200, laptop, "PUT", "category/c1", record("E", ".001"))
            #expect(own["name"] == "E" && own["updated_at"] == "2025-05-01T08:00:00.124Z")
            // Of the future: now, so that the other device is not shut out.
            let future = try await expect(
                200, phone, "PUT", "category/c1", ["name": "F", "updated_at": "2999-01-01T00:00:00Z"])
            #expect(try #require(future["updated_at"].string) < "2999")
            // The server's time has microseconds: what was shown of it is equal, too.
            let now = try await expect(200, laptop, "PUT", "category/c1", ["name": "G"])
            #expect(try await expect(200, phone, "PUT", "category/c1", now) == now)
        }
    }

    @Test func postMakesARecordOnce() async throws {
        try await withServer { scene, phone, laptop in
            let sent: JSON = ["id": "l1", "name": "A", "updated_at": "2025-05-01T08:00:00Z"]
            let made = try await expect(201, phone, "POST", "location", sent)
            #expect(made["category_id"].isNull)
            #expect(try await expect(200, phone, "POST", "location", sent) == made)
            #expect(try await expect(200, laptop, "POST", "location", ["id": "l1"]) == made)
            let other = try await expect(409, "conflict", phone, "POST", "location", sent.with("name", "B"))
            #expect(other["record"] == made)
            // Edited since where it says nothing: still the record that was made.
            let edited = try await expect(200, laptop, "PUT", "location/l1", ["category_id": "c1"])
            #expect(try await expect(200, phone, "POST", "location", sent) == edited)
            #expect(try await scene.records("location") == [edited])
        }
    }

    @Test func putChangesWhatItNamesAndMakesWhatIsAbsent() async throws {
        try await withServer { scene, phone, _ in
            let made = try await expect(201, phone, "PUT", "location/l1", ["name": "A", "category_id": "c1"])
            let changed = try await expect(200, phone, "PUT", "location/l1", ["id": "l1", "name": "B"])
            #expect(changed["name"] == "B" && changed["category_id"] == "c1")
            #expect(changed["created_at"] == made["created_at"])
            let lacking = try await expect(
                422, "change_refused", phone, "PUT", "category/c1", ["sync_status": "synced"])
            #expect(lacking["refusals"][0]["code"] == "missing_value")
            #expect(try await scene.records("category") == [])
        }
    }

    @Test func aDeletedRecordStaysDeleted() async throws {
        try await withServer { scene, phone, laptop in
            let record: JSON = ["id": "c1", "name": "A"]
            _ = try await expect(204, phone, "DELETE", "category/c1")
            _ = try await expect(201, phone, "POST", "category", record)
            for _ in 0..<2 { _ = try await expect(204, laptop, "DELETE", "category/c1") }
            for client in [phone, laptop] {
                _ = try await expect(410, "row_deleted", client, "POST", "category", record)
                _ = try await expect(410, "row_deleted", client, "PUT", "category/c1", ["name": "B"])
                _ = try await expect(404, "not_found", client, "GET", "category/c1")
                _ = try await expect(204, client, "DELETE", "category/c1")
            }
            #expect(try await scene.records("category") == [])
        }
    }

    @Test(arguments: [
        ("POST", "", #"{"name":"A"}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"","name":"A"}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1","name":"A","user_id":"xyz"}"#, 403, "forbidden"),
        ("POST", "", #"{"id":"c1","name":"A","user_id":1}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1","name":"A","sync_status":"dirty"}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1","name":"A","updated_at":"2025-05-01"}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1","name":"A","updated_at":1}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1","name":"A","created_at":1}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1","name":"A","color":"red"}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1","name":"A","name":"B"}"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1","name":null}"#, 422, "change_refused"),
        ("POST", "", #"[{"id":"c1","name":"A"}]"#, 422, "change_refused"),
        ("POST", "", #"{"id":"c1""#, 400, "malformed_json"),
        ("PUT", "/c1", #"{"id":"c2","name":"A"}"#, 422, "change_refused"),
        ("PUT", "/c1", #"{"name":"A","user_id":"xyz"}"#, 403, "forbidden"),
        ("PUT", "/c1", #"{"name":1}"#, 422, "change_refused"),
        ("DELETE", "/c1", #"{"reassign_category_id":"c1"}"#, 422, "invalid_request"),
        ("DELETE", "/c1?reassign_category_id=c1", "", 422, "invalid_request"),
        ("DELETE", "/c1?reassign_category_id=", "", 422, "invalid_request"),
        ("DELETE", "/c1?reassign_category_id=c2", #"{"reassign_category_id":"c3"}"#, 422, "invalid_request"),
        ("DELETE", "/c1?reassign_name=c2", "", 422, "change_refused"),
        ("DELETE", "/c1", #"{"reassign_category_id":7}"#, 422, "change_refused"),
        ("DELETE", "/c1", #"{"category_id":"c2"}"#, 422, "change_refused"),
        ("DELETE", "/c1", #"["c2"]"#, 422, "change_refused"),
        ("DELETE", "/c1", "c2", 400, "malformed_json"),
    ])
    func aBadRequestIsRefused(method: String, path: String, body: String, status: Int, code: String) async throws {
        try await withServer { scene, phone, _ in
            let answer = try await phone.send(method, "/api/category" + path, body.isEmpty ? nil : Data(body.utf8))
            #expect(answer.status == status)
            let problem = try answer.json()
            #expect(problem["code"].string == code)
            #expect(try await scene.records("category") == [])
        }
    }

    @Test func unknownThingsAreNamed() async throws {
        try await withServer { scene, phone, _ in
            for (path, status) in [
                ("other", 404), ("", 404), ("category/c1/x", 404), ("category/c1", 404), ("category?limit=0", 422),
                ("category?limit=x", 422), ("category?after=a&after=b", 422),
            ] {
                #expect(try await phone.get("/api/" + path).status == status, "\(path)")
            }
            for (method, path) in [("POST", "other"), ("PUT", "other/c1"), ("DELETE", "other/c1")] {
                let answer = try await phone.send(method, "/api/" + path, method == "DELETE" ? nil : ["id": "c1"])
                #expect(answer.status == 404, "\(method) \(path)")
            }
            let patched = try await phone.patch("/api/category/c1", [:])
            #expect(patched.status == 405 && patched.headers["allow"]?.contains("PUT") == true)
            let unnamed = try await DeviceClient(port: scene.port, headers: ["X-Sync-Id": "abc"]).get("/api/category")
            #expect(unnamed.status == 422)
        }
    }

    @Test func ownersAreApart() async throws {
        try await withServer { scene, phone, _ in
            _ = try await expect(201, phone, "POST", "category", ["id": "c1", "name": "A"])
            let stranger = scene.client("phone", owner: "xyz")
            #expect(try await expect(200, stranger, "GET", "category") == [])
            _ = try await expect(204, stranger, "DELETE", "category/c1")
            _ = try await expect(201, stranger, "POST", "category", ["id": "c1", "name": "B"])
            #expect(try await scene.records("category").map { $0["name"] } == ["A"])
        }
    }

    // MARK: Lists

    @Test func aLargeTableIsStreamedAndPaged() async throws {
        try await withServer { scene, phone, _ in
            let text = String(repeating: "x", count: 300)
            let client = DeviceClient(port: scene.port, syncID: "abc")
            for start in stride(from: 0, to: 3000, by: 500) {
                let changes = (start..<(start + 500)).map {
                    TestDevice.change("c\($0)", ["name": JSON(text)], table: "category").value
                }
                _ = try await client.sync(["knowledgeId": "laptop", "changes": JSON(changes)])
            }
            let deletes = (0..<500).map {
                TestDevice.change("c\($0 * 6)", [:], table: "category").with("deleted", true).value
            }
            _ = try await client.sync(["knowledgeId": "laptop", "changes": JSON(deletes)])
            let head = try await phone.send("HEAD", "/api/category", Data?.none)
            #expect(head.status == 200 && head.body.isEmpty)
            let answer = try await phone.get("/api/category")
            #expect(answer.headers["transfer-encoding"] == "chunked")
            func id(_ record: JSON) -> String { record["id"].string ?? "" }
            // A whole list has no promised order; pages have that of the ids.
            let all = try answer.json().array.sorted { id($0).utf8.lexicographicallyPrecedes(id($1).utf8) }
            #expect(all.count == 2500)
            #expect(Set(all.map(id)).count == 2500)
            var (paged, after): ([JSON], String) = ([], "")
            while true {
                let page = try await phone.get("/api/category?after=\(after)&limit=700").json().array
                #expect(page.count == min(700, 2500 - paged.count))
                paged += page
                guard page.count == 700, let last = page.last?["id"].string else { break }
                after = last
            }
            let isEqual = paged == all
            #expect(isEqual, "the pages have other records than the whole list, or another order")
            let rest = try await phone.get("/api/category?after=\(id(all[2480]))").json().array
            #expect(rest == Array(all[2481...]))
        }
    }

    // MARK: At start

    @Test(arguments: [
        (
            "note:\n    policy: lastWriteWins\n    columns:\n      User_id: text\n",
            "the table note has a column User_id"
        ),
        ("note:\n    columns:\n      title: text\n", "the table note has the policy lastSyncWins"),
        ("note:\n    policy: checkBase\n    columns:\n      title: text\n", "the table note has the policy checkBase"),
    ])
    func aSchemaThatCannotBeServedIsRefusedAtStart(table: String, message: String) async throws {
        let folder = try TestFolder()
        try folder.write("tables:\n  " + table, to: "schema.yaml")
        let run = try await CommandRun.run(
            "run", "--schema", folder.path + "/schema.yaml", "--data", folder.path + "/data", "--address",
            "127.0.0.1:0", "--faces", "crud", in: folder)
        #expect(run.code != 0)
        #expect((run.output + run.errors).contains(message), "\(run.output)\(run.errors)")
    }
}
