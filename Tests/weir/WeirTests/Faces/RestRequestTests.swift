import Foundation
import Testing

/// Each answer of the REST face.
@Suite(.timeLimit(.minutes(5))) struct RestRequestTests {
    private func withServer(_ body: (RestScene, RestDevice) async throws -> Void) async throws {
        let folder = try TestFolder()
        let weir = try await RestScene.start(in: folder, [:])
        let scene = RestScene(port: weir.port, folder: folder)
        try await body(scene, try scene.device("phone"))
        #expect(await weir.stop() == 0)
    }

    @Test func theDocumentsRequestsHaveItsAnswers() async throws {
        let walk = try WalkThrough("rest")
        let folder = try TestFolder()
        let weir = try await RestScene.start(in: folder, [:], schema: walk.schema)
        try await walk.play(port: weir.port, in: folder)
        #expect(await weir.stop() == 0)
    }

    @Test func tablesComeParentsFirst() async throws {
        try await withServer { _, phone in
            let tables = try await phone.request("GET", "/rest").json()
            #expect(tables == ["category", "item"])
        }
    }

    @Test func recordsAreWhole() async throws {
        try await withServer { _, phone in
            let made = try await phone.request("POST", "/rest/item", ["id": "i1", "title": "Milk"])
            #expect(made.status == 201)
            let record: JSON = ["id": "i1", "title": "Milk", "category_id": nil, "Ts": 100, "Deleted": false]
            #expect(try made.json() == record)
            let got = try await phone.request("GET", "/rest/item").json()
            #expect(got == JSON([record.value]))
            // A column that is left out stays as it is.
            let changed = try await phone.request("PUT", "/rest/item", ["id": "i1", "category_id": "c", "Ts": 100])
            #expect(changed.status == 200)
            #expect(try changed.json() == record.with("category_id", "c").with("Ts", 101))
        }
    }

    @Test func aRepeatedPostIsAnsweredAsTheFirst() async throws {
        try await withServer { scene, phone in
            let record: JSON = ["id": "c1", "name": "A"]
            let first = try await phone.request("POST", "/rest/category", record)
            let second = try await phone.request("POST", "/rest/category", record)
            #expect(second.status == 201)
            #expect(try second.json() == first.json())
            // In an array with new records, too.
            let third = try await phone.request(
                "POST", "/rest/category", [["id": "c1", "name": "A"], ["id": "c2", "name": "B"]])
            #expect(third.status == 201)
            #expect(try third.json().array.map { $0["Ts"] } == [100, 101])
            let other = try await phone.request("POST", "/rest/category", record.with("name", "B"))
            #expect(other.status == 409)
            #expect(try other.json()["record"] == first.json())
            // Another device's row is no repeat, even with equal values.
            let laptop = try scene.device("laptop")
            let foreign = try await laptop.request("POST", "/rest/category", record)
            #expect(foreign.status == 409)
            #expect(try foreign.json()["code"] == "conflict")
        }
    }

    @Test func aRepeatedPutIsAnsweredAsTheFirst() async throws {
        try await withServer { scene, phone in
            try await phone.request("POST", "/rest/category", ["id": "c1", "name": "A"])
            let update: JSON = ["id": "c1", "name": "B", "Ts": 100]
            for _ in 0..<2 {
                let answer = try await phone.request("PUT", "/rest/category", update)
                #expect(answer.status == 200)
                #expect(try answer.json()["Ts"] == 101)
            }
            let stale = try await phone.request("PUT", "/rest/category", update.with("name", "C"))
            #expect(stale.status == 409)
            #expect(try stale.json()["record"]["name"] == "B")
            let ahead = try await phone.request("PUT", "/rest/category", update.with("name", "C").with("Ts", 102))
            #expect(ahead.status == 409)
        }
    }

    @Test func deletesAndTombstones() async throws {
        try await withServer { scene, phone in
            try await phone.request("POST", "/rest/category", ["id": "c1", "name": "A"])
            let deleted = try await phone.request(
                "PUT", "/rest/category", ["id": "c1", "name": "A", "Ts": 100, "Deleted": true])
            #expect(deleted.status == 200)
            let tombstone: JSON = ["id": "c1", "name": "A", "Ts": 101, "Deleted": true]
            #expect(try deleted.json() == tombstone)
            // Over a tombstone, so that the row does not stay alive on a device that got none.
            let laptop = try scene.device("laptop")
            #expect(try await laptop.request("GET", "/rest/category").json() == [])
            let over = try await laptop.request("POST", "/rest/category", ["id": "c1", "name": "B"])
            #expect(over.status == 409)
            #expect(try over.json()["record"] == tombstone)
            #expect(try await laptop.request("GET", "/rest/category?ts=100").json() == JSON([tombstone.value]))
            // One who has seen the tombstone may bring the row back.
            let back = try await laptop.request("PUT", "/rest/category", ["id": "c1", "name": "B", "Ts": 101])
            #expect(back.status == 200)
            #expect(try back.json()["Deleted"] == false)
            // A record that was made and deleted before it was ever sent.
            for _ in 0..<2 {
                let both = try await phone.request(
                    "POST", "/rest/category", ["id": "c2", "name": "C", "Deleted": true])
                #expect(both.status == 201)
                #expect(try both.json()["Deleted"] == true)
            }
            #expect(try await scene.rows("category").count == 1)
        }
    }

    @Test func aDeleteOfARowThatDoesNotExistIsRefused() async throws {
        try await withServer { scene, phone in
            for ts in [100, 1 << 52] {
                let alone = try await phone.request(
                    "PUT", "/rest/category", ["id": "gone", "Ts": JSON(ts), "Deleted": true])
                #expect(alone.status == 404)
            }
            try await phone.request("POST", "/rest/category", ["id": "c1", "name": "A"])
            for ts in [100, 1 << 52] {
                let array = try await phone.request(
                    "PUT", "/rest/category",
                    [["id": "c1", "name": "B", "Ts": 100], ["id": "gone", "Ts": JSON(ts), "Deleted": true]])
                #expect(array.status == 422)
                let refusals = try array.json()["refusals"]
                #expect(refusals.array.map { $0["position"] } == [1] && refusals[0]["code"] == "row_gone")
            }
            #expect(try await scene.rows("category").map { $0["name"] } == ["A"])
            // Deletes of rows that exist pass, in an array, too.
            let both = try await phone.request(
                "PUT", "/rest/category", [["id": "c1", "name": "A", "Ts": 100, "Deleted": true]])
            #expect(both.status == 200)
            #expect(try both.json()[0]["Deleted"] == true)
        }
    }

    @Test func anArrayIsStoredAsAWholeOrNotAtAll() async throws {
        try await withServer { scene, phone in
            let made = try await phone.request(
                "POST", "/rest/category", [["id": "c1", "name": "A"], ["id": "c2", "name": "B"]])
            #expect(try made.json().array.map { $0["Ts"] } == [100, 101])
            try await scene.write("laptop", "category", "c2", ["name": "C"])
            let stale = try await phone.request(
                "PUT", "/rest/category",
                [["id": "c1", "name": "D", "Ts": 100], ["id": "c2", "name": "D", "Ts": 101]])
            #expect(stale.status == 409)
            let conflict = try stale.json()
            #expect(conflict["records"][0]["position"] == 1 && conflict["records"].array.count == 1)
            #expect(conflict["records"][0]["record"]["name"] == "C")
            let refused = try await phone.request(
                "PUT", "/rest/category",
                [["id": "c1", "name": "D", "Ts": 100], ["id": "gone", "name": "D", "Ts": 101], ["id": "c3"]])
            #expect(refused.status == 422)
            #expect(try refused.json()["refusals"].array.map { $0["position"] } == [2])
            let absent = try await phone.request(
                "PUT", "/rest/category",
                [["id": "c1", "name": "D", "Ts": 100], ["id": "gone", "name": "D", "Ts": 101]])
            #expect(absent.status == 422)
            #expect(try absent.json()["refusals"][0]["code"] == "row_gone")
            let twice = try await phone.request("POST", "/rest/category", [["id": "c4"], ["id": "c4"]])
            #expect(twice.status == 422)
            #expect(try await phone.request("POST", "/rest/category", []).json() == [])
            let names = try await scene.rows("category").map { $0["name"] }
            #expect(names == ["A", "C"])
        }
    }

    @Test(arguments: [
        ("PUT", #"{"id":"c1","name":"A"}"#, 422, "change_refused"),
        ("PUT", #"{"id":"c1","name":"A","Ts":0}"#, 422, "change_refused"),
        ("PUT", #"{"id":"c1","name":"A","Ts":7}"#, 404, "not_found"),
        ("PUT", #"{"id":"c1","name":"A","Ts":1.5}"#, 422, "change_refused"),
        ("POST", #"{"id":"c1","name":"A","Ts":7}"#, 422, "change_refused"),
        ("POST", #"{"id":"c1","other":"A"}"#, 422, "change_refused"),
        ("POST", #"{"id":"c1","name":1}"#, 422, "change_refused"),
        ("POST", #"{"id":"","name":"A"}"#, 422, "change_refused"),
        ("POST", #"{"name":"A"}"#, 422, "change_refused"),
        ("POST", #"{"id":"c1","id":"c2"}"#, 422, "change_refused"),
        ("POST", #"{"id":"c1","Deleted":1}"#, 422, "change_refused"),
        ("POST", #""c1""#, 422, "change_refused"),
        ("POST", #"{"id":"c1""#, 400, "malformed_json"),
    ])
    func aBadRecordIsRefused(method: String, body: String, status: Int, code: String) async throws {
        try await withServer { scene, phone in
            let answer = try await phone.client.send(method, "/rest/category", Data(body.utf8))
            #expect(answer.status == status)
            let problem = try answer.json()
            #expect(problem["code"].string == code)
            let rows = try await scene.rows("category")
            #expect(rows.isEmpty)
        }
    }

    @Test func unknownThingsAreNamed() async throws {
        try await withServer { scene, phone in
            for (path, status) in [
                ("/rest/other", 404), ("/rest/item/1", 404), ("/rest/item?ts=x", 422), ("/rest/item?ts=-1", 422),
                ("/rest/item?limit=0", 422), ("/rest/item?ts=1&ts=2", 422),
            ] {
                let answer = try await phone.client.get(path)
                #expect(answer.status == status, "\(path)")
            }
            for method in ["POST", "PUT"] {
                let answer = try await phone.client.send(method, "/rest/other", ["id": "1", "Ts": 1])
                #expect(answer.status == 404, "\(method)")
            }
            let deleted = try await phone.client.delete("/rest/item")
            #expect(deleted.status == 405 && deleted.headers["allow"]?.contains("PUT") == true)
            let nobody = DeviceClient(port: scene.port, headers: ["X-Sync-Id": "abc"])
            let unnamed = try await nobody.get("/rest/item")
            #expect(unnamed.status == 422)
            // A Ts that this server has never given.
            let ahead = try await phone.client.get("/rest/item?ts=999")
            #expect(ahead.status == 410)
            let problem = try ahead.json()
            #expect(problem["code"] == "position_ahead")
        }
    }

    /// Everything comes in one answer, however much it is, and in pages where the client asks for them.
    @Test func aLargeTableIsStreamed() async throws {
        try await withServer { scene, phone in
            let laptop = try scene.device("laptop")
            let text = String(repeating: "x", count: 300)
            for start in stride(from: 0, to: 3000, by: 500) {
                let records = (start..<(start + 500)).map { ["id": "c\($0)", "name": text] }
                let answer = try await laptop.request("POST", "/rest/category", JSON(records))
                #expect(answer.status == 201)
            }
            let head = try await phone.client.send("HEAD", "/rest/category", Data?.none)
            #expect(head.status == 200 && head.body.isEmpty)
            let all = try await phone.request("GET", "/rest/category")
            #expect(all.headers["transfer-encoding"] == "chunked")
            let records = try all.json().array
            #expect(records.count == 3000)
            let order = records.compactMap { $0["Ts"].int }
            #expect(order == order.sorted() && Set(order).count == 3000)
            let pages = try await phone.pages(of: "category", above: 0, limit: 700)
            #expect(pages.allSatisfy { $0.count <= 700 })
            #expect(pages.flatMap(\.self) == records)
            let ts = try #require(order.last)
            // The writer's own rows do not come back, and its pages end, too.
            let own = try await laptop.request("GET", "/rest/category?ts=\(ts)").json().array
            #expect(own.isEmpty)
            let rest = try await laptop.request("GET", "/rest/category?ts=\(ts - 10)&limit=4").json().array
            #expect(rest.count == 4)
        }
    }

    /// The rows below an own upload come with each page, and do not count for `limit`: the last page is the one without rows above `ts`.
    @Test func pagesEndWhereTheNewestRowIsAnOwnUpload() async throws {
        try await withServer { scene, phone in
            try await scene.write("laptop", "category", "below", ["name": "A"])
            let own = try await phone.request("POST", "/rest/category", ["id": "own", "name": "B"]).json()
            let ts = try #require(own["Ts"].int)
            let idle = try await phone.pages(of: "category", above: ts, limit: 2)
            #expect(idle.map { $0.map { $0["id"] } } == [["below"]])
            for index in 1...3 { try await scene.write("laptop", "category", "c\(index)", ["name": "C"]) }
            let pages = try await phone.pages(of: "category", above: ts, limit: 2)
            #expect(pages.map { $0.map { $0["id"] } } == [["below", "c1", "c2"], ["c3"], []])
        }
    }

    @Test func ownersAreApart() async throws {
        try await withServer { scene, phone in
            try await phone.request("POST", "/rest/category", ["id": "c1", "name": "A"])
            let stranger = try scene.device("phone2", owner: "def")
            #expect(try await stranger.request("GET", "/rest/category").json() == [])
            let made = try await stranger.request("POST", "/rest/category", ["id": "c1", "name": "B"])
            #expect(made.status == 201)
            let rows = try await scene.rows("category")
            #expect(rows.map { $0["name"] } == ["A"])
        }
    }
}

extension RestDevice {
    /// The pages of a table, asked for as docs/faces/rest.md says, until one has no record above its `ts`.
    fileprivate func pages(of table: String, above first: Int, limit: Int) async throws -> [[JSON]] {
        var (pages, ts): ([[JSON]], Int) = ([], first)
        while true {
            let page = try await request("GET", "/rest/\(table)?ts=\(ts)&limit=\(limit)").json().array
            pages.append(page)
            guard let newest = page.compactMap({ $0["Ts"].int }).max(), newest > ts else { return pages }
            ts = newest
        }
    }
}
