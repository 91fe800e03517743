import Foundation
import Testing

/// What uploads and downloads are answered.
extension SQLiteNowTests {
    private struct Raw {
        let client: DeviceClient

        init(_ port: UInt16, _ source: String, owner: String = "anna") {
            client = DeviceClient(port: port, headers: ["X-Sync-Id": owner, "X-Device-Id": source])
        }

        func upload(_ changes: [JSON], seen: Int? = nil) async throws -> JSON {
            var body: JSON = ["changes": JSON(changes.map(\.value))]
            if let seen { body = body.with("lastServerSeqSeen", JSON(seen)) }
            let answer = try await client.post("/sync/upload", body)
            try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            return try answer.json()
        }

        func download(_ query: String) async throws -> JSON {
            let answer = try await client.get("/sync/download?\(query)")
            try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            return try answer.json()
        }
    }

    private static func change(
        _ number: Int, _ op: String, _ key: String, base: Int = 0, _ payload: JSON = nil, table: String = "users"
    ) -> JSON {
        [
            "sourceChangeId": JSON(number), "schema": "business", "table": JSON(table), "op": JSON(op), "pk": JSON(key),
            "serverVersion": JSON(base), "payload": payload,
        ]
    }

    @Test func everyChangeGetsItsStatusInTheOrderOfTheRequest() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let (a, b) = (Raw(port, "a"), Raw(port, "b"))
            let first = try await a.upload([
                Self.change(1, "INSERT", "u1", ["id": "u1", "name": "Alice", "email": nil]),
                Self.change(2, "INSERT", "u2", ["id": "u3", "name": "Bob"]),
                Self.change(3, "UPDATE", "u3", base: 50, ["name": "Carl"]),
                Self.change(4, "UPDATE", "u4", ["name": "Dora"]),
                Self.change(5, "DELETE", "u5", base: 7),
                Self.change(6, "INSERT", "u6", ["email": "x"]),
                Self.change(7, "INSERT", "u7", ["name": "E", "age": 5]),
                Self.change(8, "MERGE", "u8", ["name": "F"]),
                Self.change(9, "INSERT", "u9", ["name": "G"], table: "cars"),
                Self.change(10, "INSERT", "", ["name": "H"]), Self.change(11, "INSERT", "u11"),
                Self.change(12, "UPDATE", "u1", ["name": "Alice 2"]),
                Self.change(13, "INSERT", "t1", ["title": "T", "done": 1], table: "TASKS"),
            ])
            let statuses = first["statuses"].array
            #expect(statuses.map { $0["sourceChangeId"].int } == Array(1...13))
            #expect(
                statuses.map { $0["status"].string } == [
                    "applied", "invalid", "invalid", "applied", "applied", "invalid", "invalid", "invalid", "invalid",
                    "invalid", "invalid", "applied", "applied",
                ])
            #expect(statuses.map { $0["newServerVersion"].int }.compactMap(\.self) == [100, 101, 7, 102, 103])
            #expect(statuses.allSatisfy { ($0["status"] == "invalid") == ($0["message"].string != nil) })
            let second = try await b.upload([
                Self.change(1, "UPDATE", "u1", base: 100, ["name": "B"]), Self.change(2, "DELETE", "u1", base: 100),
                Self.change(3, "INSERT", "u1", ["name": "B"]), Self.change(4, "UPDATE", "u1", base: 500, ["name": "B"]),
            ])["statuses"].array
            #expect(second.map { $0["status"].string } == ["conflict", "conflict", "conflict", "conflict"])
            for conflict in second {
                #expect(conflict["newServerVersion"] == 102 && conflict["serverRow"]["id"] == "u1")
            }
            let third = try await b.upload([Self.change(5, "UPDATE", "u1", base: 102, ["name": "B", "email": nil])])
            #expect(third["statuses"][0]["status"] == "applied")
            let rows = try await b.download("after=102&limit=10&includeSelf=true")["changes"].array
            #expect(rows.map { $0["tableName"] } == ["tasks", "users"])
            #expect(rows[0]["payload"]["done"] == true && rows[0]["payload"]["title"] == "T")
            #expect(rows[1]["payload"]["name"] == "B" && rows[1]["sourceId"] == "b")
        }
    }

    /// As the table of docs/faces/sqlitenow.md has it, for rows that another device wrote or deleted.
    @Test func theBaseDecidesOverRowsOfAnotherDevice() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let (a, b) = (Raw(port, "a"), Raw(port, "b"))
            _ = try await a.upload((1...4).map { Self.change($0, "INSERT", "u\($0)", ["name": "Alice"]) })
            let blind = try await b.upload([Self.change(1, "UPDATE", "u1", ["name": "B"])])["statuses"][0]
            #expect(blind["status"] == "conflict" && blind["newServerVersion"] == 100)
            #expect(blind["serverRow"]["name"] == "Alice")
            let deleted = try await b.upload((2...4).map { Self.change($0, "DELETE", "u\($0)", base: 99 + $0) })
            let tombstone = try #require(deleted["statuses"][2]["newServerVersion"].int)
            // A tombstone that the device has not seen: the row stays deleted.
            let unseen = try await a.upload([
                Self.change(5, "UPDATE", "u2", base: 101, ["name": "C"]), Self.change(6, "INSERT", "u3", ["name": "C"]),
            ])["statuses"].array
            #expect(unseen.map { $0["status"] } == ["applied", "applied"])
            #expect(unseen.map { $0["newServerVersion"] } == [101, 0])
            // One that it has seen: the row lives again.
            let seen = try await a.upload([Self.change(7, "UPDATE", "u4", base: tombstone, ["name": "C"])])
            let version = try #require(seen["statuses"][0]["newServerVersion"].int)
            #expect(seen["statuses"][0]["status"] == "applied" && version > tombstone)
            let rows = try await a.download("after=103&limit=10&includeSelf=true")["changes"].array
            let shown = Dictionary(uniqueKeysWithValues: rows.map { ($0["pk"].string ?? "", $0["op"].string ?? "") })
            #expect(shown["u2"] == "DELETE" && shown["u3"] == "DELETE" && shown["u4"] != "DELETE")
            #expect(rows.last?["pk"] == "u4" && rows.last?["serverVersion"].int == version)
        }
    }

    /// A status of its own, so that the client keeps the change and sends it again.
    @Test func aChangeThatMayPassLaterIsNotInvalid() async throws {
        try await Self.withServer(["limits.max-owner-rows": "1"]) { port, _ in
            let a = Raw(port, "a")
            let (first, second) = (
                Self.change(1, "INSERT", "u1", ["name": "A"]), Self.change(2, "INSERT", "u2", ["name": "B"])
            )
            let statuses = try await a.upload([first, second])["statuses"].array
            #expect(statuses.map { $0["status"] } == ["applied", "materialize_error"])
            #expect(statuses[1]["message"].string?.isEmpty == false && statuses[1]["newServerVersion"].int == nil)
            let version = try #require(statuses[0]["newServerVersion"].int)
            _ = try await a.upload([Self.change(3, "DELETE", "u1", base: version)])
            #expect(try await a.upload([second])["statuses"][0]["status"] == "applied")
        }
    }

    /// Later changes make one needless that was not stored, where they were stored, and have all its columns or delete the row.
    @Test func aChangeIsDoneWhereLaterOnesOfItsRowHaveAllItsColumns() async throws {
        try await Self.withServer(["limits.max-owner-rows": "1"]) { port, _ in
            let a = Raw(port, "a")
            var (full, number) = (0, 0)
            /// The statuses of an insert above the quota, of the delete that makes room for later changes, and of these.
            func statuses(_ later: [(op: String, payload: JSON)]) async throws -> [String?] {
                full += 1
                let (row, other) = ("r\(full)", "u\(full)")
                func next(_ op: String, _ key: String, _ payload: JSON) -> JSON {
                    number += 1
                    return Self.change(number, op, key, payload)
                }
                _ = try await a.upload([next("INSERT", other, ["name": "N", "email": nil])])
                var changes = [next("INSERT", row, ["name": "Old", "email": "old"]), next("DELETE", other, nil)]
                changes += later.map { next($0.op, row, $0.payload) }
                let answer = try await a.upload(changes)["statuses"].array
                #expect(answer[0]["status"] == "materialize_error" || answer[0]["newServerVersion"] == 0)
                // For the next one.
                _ = try await a.upload([next("DELETE", row, nil)])
                return answer.map { $0["status"].string }
            }
            let (done, isOpen) = ("applied", "materialize_error")
            let all = try await statuses([("UPDATE", ["name": "N", "email": "n"])])
            #expect(all == [done, done, done])
            let part = try await statuses([("UPDATE", ["name": "N"])])
            #expect(part == [isOpen, done, done])
            let parts = try await statuses([("UPDATE", ["name": "N"]), ("UPDATE", ["email": "n"])])
            #expect(parts == [done, done, done, done])
            let refused = try await statuses([("UPDATE", ["name": 1, "email": "n"])])
            #expect(refused == [isOpen, done, "invalid"])
            let again = try await statuses([("DELETE", nil), ("UPDATE", ["name": "N"])])
            #expect(again == [done, done, done, done])
        }
    }

    @Test func changesOfRowsThatAreTooLargeTogetherMayPassLater() async throws {
        let limits = ["limits.max-row-bytes": "400B", "limits.max-batch-row-bytes": "400B"]
        try await Self.withServer(limits.merging(["limits.max-value-bytes": "400B"]) { $1 }) { port, _ in
            let a = Raw(port, "a")
            let name = JSON(String(repeating: "n", count: 250))
            for number in 1...3 {
                _ = try await a.upload([Self.change(number, "INSERT", "u\(number)", ["name": name, "email": nil])])
            }
            let edits = (1...3).map { Self.change(10 + $0, "UPDATE", "u\($0)", ["name": "A", "email": nil]) }
            let statuses = try await a.upload(edits)["statuses"].array
            #expect(statuses.map { $0["status"] } == ["applied", "applied", "materialize_error"])
            #expect(try await a.upload([edits[2]])["statuses"][0]["status"] == "applied")
        }
    }

    @Test func aRepeatedChangeIsAppliedOnceAndOtherContentIsInvalid() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let a = Raw(port, "a")
            let change = Self.change(1, "INSERT", "u1", ["name": "Alice"])
            for _ in 1...3 {
                let status = try await a.upload([change])["statuses"][0]
                #expect(status["status"] == "applied" && status["newServerVersion"] == 100)
            }
            let other = try await a.upload([Self.change(1, "INSERT", "u1", ["name": "Bob"])])["statuses"][0]
            #expect(other["status"] == "invalid")
            // Of another source.
            let foreign = try await Raw(port, "b").upload([change])["statuses"][0]
            #expect(foreign["status"] == "conflict" && foreign["newServerVersion"] == 100)
        }
    }

    @Test func aDownloadHasThePagesOfAWindow() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let (a, b) = (Raw(port, "a"), Raw(port, "b"))
            _ = try await a.upload((1...5).map { Self.change($0, "INSERT", "u\($0)", ["name": "N", "email": nil]) })
            let first = try await b.download("after=0&limit=2")
            #expect(first["changes"].array.map { $0["serverVersion"].int } == [100, 101])
            #expect(first["hasMore"] == true && first["nextAfter"] == 101 && first["windowUntil"] == 104)
            _ = try await a.upload([Self.change(6, "INSERT", "u6", ["name": "N", "email": nil])])
            let second = try await b.download("after=101&limit=100000&until=104")
            #expect(second["changes"].array.map { $0["serverVersion"].int } == [102, 103, 104])
            #expect(second["hasMore"] == false && second["nextAfter"] == 104 && second["windowUntil"] == 104)
            let third = try await b.download("after=104&limit=10")
            #expect(third["changes"].array.map { $0["op"].string } == ["INSERT"])
            // Its own are left out, and the position moves over them.
            let own = try await a.download("after=0&limit=3")
            #expect(own["changes"].array.isEmpty && own["nextAfter"] == 105 && own["hasMore"] == false)
            let all = try await a.download("after=0&limit=10&includeSelf=true")
            #expect(all["changes"].array.count == 6)
            let snake = try await a.download("after=0&limit=1&include_self=true")
            #expect(
                snake["changes"][0]["server_version"] == 100 && snake["next_after"] == 100 && snake["has_more"] == true)
        }
    }

    @Test func aLimitOfMoreThanAThousandIsTakenAsAThousand() async throws {
        try await Self.withServer(["clock": "sequence(1)"]) { port, _ in
            _ = try await Raw(port, "a").upload(
                (1...1001).map { Self.change($0, "INSERT", "u\($0)", ["name": "N", "email": nil]) })
            let first = try await Raw(port, "b").download("after=0&limit=100000")
            #expect(first["changes"].array.count == 1000)
            #expect(first["hasMore"] == true && first["nextAfter"] == 1000 && first["windowUntil"] == 1001)
            let second = try await Raw(port, "b").download("after=1000&limit=100000&until=1001")
            #expect(second["changes"].array.count == 1 && second["hasMore"] == false)
        }
    }

    @Test func anOwnRowThatIsNotAsItWasSentComesBackWithoutASource() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let a = Raw(port, "a")
            // Without email, which the server fills in.
            _ = try await a.upload([
                Self.change(1, "INSERT", "u1", ["name": "Alice"]),
                Self.change(2, "INSERT", "u2", ["name": "Bob", "email": "b"]),
            ])
            let rows = try await a.download("after=0&limit=10")["changes"].array
            #expect(rows.map { $0["pk"] } == ["u1"])
            #expect(rows.map { $0["sourceId"] } == [""])
        }
    }

    @Test func theHighestVersionIsNamedWhereNothingWaitsToBeDownloaded() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let (a, b) = (Raw(port, "a"), Raw(port, "b"))
            func change(_ number: Int) -> JSON {
                Self.change(number, "INSERT", "u\(number)", ["name": "N", "email": nil])
            }
            let answer1 = try await a.upload([change(1)])
            #expect(answer1["highestServerSeq"].isNull)
            let answer2 = try await a.upload([change(2)], seen: 0)
            #expect(answer2["highestServerSeq"] == 101)
            let answer3 = try await b.upload([change(3)], seen: 0)
            #expect(answer3["highestServerSeq"].isNull)
            let answer4 = try await b.upload([change(4)], seen: 101)
            #expect(answer4["highestServerSeq"] == 103)
        }
    }

    @Test func snakeCaseIsAnsweredInSnakeCase() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let client = Raw(port, "a").client
            let answer = try await client.post(
                "/sync/upload",
                [
                    "last_server_seq_seen": 0,
                    "changes": [
                        [
                            "source_change_id": 1, "table": "users", "op": "INSERT", "pk": "u1", "server_version": 0,
                            "payload": ["name": "A", "email": nil],
                        ],
                        ["source_change_id": 2, "table": "x", "op": "INSERT", "pk": "u1", "payload": [:]],
                    ],
                ]
            ).json()
            #expect(
                answer["statuses"][0]["source_change_id"] == 1 && answer["statuses"][0]["new_server_version"] == 100)
            #expect(answer["statuses"][1]["source_change_id"] == 2)
            #expect(answer["highest_server_seq"] == 100)
        }
    }

    @Test(
        arguments: [
            ("GET", "/sync/download?limit=10", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=0", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=0&limit=0", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=x&limit=10", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=0&limit=10&includeSelf=perhaps", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=900&limit=10", nil, 410, "position_ahead"),
            ("GET", "/sync/download?after=0&limit=10&schema=private", nil, 422, "invalid_request"),
            ("POST", "/sync/upload", "[]", 422, "invalid_request"),
            ("POST", "/sync/upload", "{", 400, "malformed_json"),
            ("POST", "/sync/upload", #"{"changes":{}}"#, 422, "invalid_request"),
            ("POST", "/sync/upload", #"{"changes":[{}]}"#, 422, "invalid_request"),
            ("POST", "/sync/upload", #"{"changes":[],"lastServerSeqSeen":-1}"#, 422, "invalid_request"),
        ] as [(String, String, String?, Int, String)])
    func requestsThatCannotBeReadAreProblems(
        method: String, path: String, body: String?, status: Int, code: String
    ) async throws {
        try await Self.withServer(["sqlitenow.schema": "business"]) { port, _ in
            let client = Raw(port, "a").client
            let answer =
                method == "GET"
                ? try await client.get(path + (path.contains("schema=") ? "" : "&schema=business"))
                : try await client.post(path, bytes: Data((body ?? "").utf8))
            #expect(answer.status == status)
            #expect(try answer.json()["code"].string == code)
        }
    }

    @Test func theSchemasNameIsComparedWhereOneIsConfigured() async throws {
        try await Self.withServer(["sqlitenow.schema": "business", "clock": "sequence(100)"]) { port, _ in
            let a = Raw(port, "a")
            let change = Self.change(1, "INSERT", "u1", ["name": "A"])
            let statuses = try await a.upload([change, change.with("sourceChangeId", 2).with("schema", "x")])[
                "statuses"]
            #expect(statuses[0]["status"] == "applied" && statuses[1]["status"] == "invalid")
        }
    }

    @Test func anotherOwnersRowsAreNeitherSentNorTouched() async throws {
        try await Self.withServer { port, _ in
            _ = try await Raw(port, "a").upload([Self.change(1, "INSERT", "u1", ["name": "A", "email": nil])])
            let stranger = Raw(port, "a", owner: "berta")
            let nothing = try await stranger.download("after=0&limit=10")["changes"].array
            #expect(nothing.isEmpty)
            let status = try await stranger.upload([Self.change(1, "DELETE", "u1", base: 0)])["statuses"][0]
            #expect(status["status"] == "applied" && status["newServerVersion"] == 0)
            let rows = try await Raw(port, "b").download("after=0&limit=10")["changes"].array
            #expect(rows.count == 1)
        }
    }
}
