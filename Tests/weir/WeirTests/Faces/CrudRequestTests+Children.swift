import Foundation
import Testing

/// Deletes of records that others name.
extension CrudRequestTests {
    /// A parent, and one that its children can go to.
    private func addCategories(_ phone: DeviceClient) async throws {
        for id in ["c1", "c2"] {
            _ = try await expect(201, phone, "POST", "category", ["id": JSON(id), "name": "A"])
        }
    }

    @Test func childrenGoWhereTheRequestSays() async throws {
        try await withServer(["clock": "sequence(100)"]) { scene, phone, laptop in
            for id in ["c1", "c2", "c3"] {
                _ = try await expect(201, phone, "POST", "category", ["id": JSON(id), "name": "A"])
            }
            _ = try await expect(204, phone, "DELETE", "category/c3")
            for (id, category) in [("l1", "c1"), ("l2", "c1"), ("l3", "c2"), ("l4", "c1")] {
                let sent: JSON = ["id": JSON(id), "name": JSON(id), "category_id": JSON(category)]
                _ = try await expect(201, laptop, "POST", "location", sent)
            }
            _ = try await expect(204, laptop, "DELETE", "location/l4")
            let before = try await scene.records("location")
            let needed = try await expect(409, "has_children", phone, "DELETE", "category/c1")
            #expect(needed["children"] == [["table": "location", "column": "category_id", "count": 2]])
            #expect(needed["detail"].string?.contains("(2)") == true)
            for target in ["nowhere", "c3"] {
                let body: JSON = ["reassign_category_id": JSON(target)]
                _ = try await expect(422, "change_refused", phone, "DELETE", "category/c1", body)
                // Also where there are no children.
                _ = try await expect(201, phone, "PUT", "category/c4-\(target)", ["name": "A"])
                _ = try await expect(422, "change_refused", phone, "DELETE", "category/c4-\(target)", body)
            }
            #expect(try await scene.records("location") == before)
            // Both say the same.
            let path = "category/c1?reassign_category_id=c2"
            _ = try await expect(204, phone, "DELETE", path, ["reassign_category_id": "c2"])
            let after = try await scene.records("location")
            #expect(after.map { $0["category_id"] } == ["c2", "c2", "c2"])
            #expect(after.map { $0["name"] } == ["l1", "l2", "l3"])
            #expect(after[2] == before[2])
            #expect(try #require(after[0]["updated_at"].string) > (try #require(before[0]["updated_at"].string)))
            // The target is as it was.
            let target = try await expect(200, phone, "GET", "category/c2")
            #expect(target["updated_at"] == target["created_at"])
            // All in one batch: no other timeStamp is between them.
            let rows = try await scene.rows().filter { ["c1", "c2", "l1", "l2"].contains($0["id"].string) }
            let times = rows.compactMap { $0["timeStamp"].int }.sorted()
            #expect(times == Array(112...115))
            // Sent again, also with a target that is not there any more.
            _ = try await expect(204, phone, "DELETE", path)
            _ = try await expect(204, phone, "DELETE", "category/c1?reassign_category_id=c3")
        }
    }

    @Test func aRequestReassignsNoMoreThanABatchMayHave() async throws {
        try await withServer(["limits.max-changes": "4"]) { scene, phone, _ in
            try await addCategories(phone)
            for number in 1...5 {
                _ = try await expect(
                    201, phone, "POST", "location", ["id": JSON("l\(number)"), "category_id": "c1"])
            }
            let path = "category/c1?reassign_category_id=c2"
            let problem = try await expect(422, "invalid_request", phone, "DELETE", path)
            #expect(
                problem["detail"].string
                    == "the record has 5 children, at most 4 can be reassigned at once: "
                    + "change category_id of some of them with PUT first")
            _ = try await expect(204, phone, "DELETE", "location/l5")
            _ = try await expect(204, phone, "DELETE", path)
            #expect(try await scene.records("location").map { $0["category_id"] } == ["c2", "c2", "c2", "c2"])
        }
    }

    /// With the limits as they are by default.
    @Test func tenThousandChildrenAreReassignedAtOnce() async throws {
        try await withServer(["gateway.outcome-wait": "120s"]) { scene, phone, laptop in
            try await addCategories(phone)
            let client = DeviceClient(port: scene.port, syncID: "abc")
            for start in stride(from: 0, to: 10_000, by: 2500) {
                let changes = (start..<(start + 2500)).map {
                    TestDevice.change("l\($0)", ["category_id": "c1"], table: "location").value
                }
                _ = try await client.sync(["knowledgeId": "laptop", "changes": JSON(changes)])
            }
            _ = try await expect(201, laptop, "POST", "location", ["id": "last", "category_id": "c1"])
            let path = "category/c1?reassign_category_id=c2"
            let problem = try await expect(422, "invalid_request", phone, "DELETE", path)
            #expect(
                problem["detail"].string?.hasPrefix("the record has 10001 children, at most 10000 can be") == true)
            _ = try await expect(204, laptop, "DELETE", "location/last")
            _ = try await expect(204, phone, "DELETE", path)
            let locations = try await expect(200, laptop, "GET", "location").array
            #expect(locations.count == 10_000 && locations.allSatisfy { $0["category_id"] == "c2" })
            #expect(try await scene.records("category").map { $0["id"] } == ["c2"])
        }
    }

    /// With a row's text of more than a fifth of what a batch may change.
    @Test func childrenThatAreTooLargeTogetherAreReassignedInSeveralRequests() async throws {
        try await withServer([
            "limits.max-row-bytes": "1KiB", "limits.max-batch-row-bytes": "4KiB", "limits.max-value-bytes": "1KiB",
        ]) { scene, phone, laptop in
            try await addCategories(phone)
            let text = JSON(String(repeating: "x", count: 900))
            for number in 1...12 {
                let child: JSON = ["id": JSON("l\(number)"), "name": text, "category_id": "c1"]
                _ = try await expect(201, laptop, "POST", "location", child)
            }
            let path = "category/c1?reassign_category_id=c2"
            let problem = try await expect(422, "invalid_request", phone, "DELETE", path)
            #expect(problem["detail"].string?.hasSuffix("change category_id of some of them with PUT first") == true)
            #expect(try await scene.records("location").allSatisfy { $0["category_id"] == "c1" })
            // The way out.
            for number in 1...10 {
                _ = try await expect(200, phone, "PUT", "location/l\(number)", ["category_id": "c2"])
            }
            _ = try await expect(204, phone, "DELETE", path)
            #expect(try await scene.records("location").allSatisfy { $0["category_id"] == "c2" })
            // Children that others made after it was deleted go in several transactions.
            for number in 1...12 {
                _ = try await expect(200, laptop, "PUT", "location/l\(number)", ["category_id": "c1"])
            }
            _ = try await expect(204, phone, "DELETE", path)
            #expect(try await scene.records("location").allSatisfy { $0["category_id"] == "c2" })
        }
    }

    /// The changes of a batch are as large as those of any other.
    @Test func childrenOfWhichABatchWouldBeTooLargeAreNotReassigned() async throws {
        try await withServer(["limits.max-batch-bytes": "4KiB"]) { scene, phone, _ in
            try await addCategories(phone)
            for number in 1...60 {
                _ = try await expect(
                    201, phone, "POST", "location", ["id": JSON("l\(number)"), "category_id": "c1"])
            }
            let path = "category/c1?reassign_category_id=c2"
            let problem = try await expect(422, "invalid_request", phone, "DELETE", path)
            #expect(
                problem["detail"].string
                    == "the record's children, and what they go to, are together larger than can be changed at once: "
                    + "change category_id of some of them with PUT first")
            for number in 1...40 {
                _ = try await expect(200, phone, "PUT", "location/l\(number)", ["category_id": "c2"])
            }
            _ = try await expect(204, phone, "DELETE", path)
            #expect(try await scene.records("location").allSatisfy { $0["category_id"] == "c2" })
        }
    }

    /// Several tables and columns, ids of the type uuid, and a table that references itself.
    @Test func everyReferenceThatSaysSoCounts() async throws {
        let schema = """
            tables:
              folder:
                policy: lastWriteWins
                columns:
                  parent_id: { type: uuid, references: folder, onDelete: reassign }
              file:
                policy: lastWriteWins
                columns:
                  folder_id: { type: uuid, references: folder, onDelete: reassign }
                  copy_id: { type: text, references: folder, onDelete: reassign }
                  origin_id: { type: text, references: folder }
            """
        try await withServer(schema: schema) { scene, phone, _ in
            let ids = (1...5).map { "a000000\($0)-0000-4000-8000-00000000000b" }
            for (id, parent) in zip(ids, [nil, ids[0], ids[1], nil, ids[4]]) {
                let body: JSON = ["parent_id": parent.map { JSON($0.uppercased()) } ?? nil]
                _ = try await expect(201, phone, "PUT", "folder/\(id)", body)
            }
            let both: JSON = ["folder_id": JSON(ids[0]), "copy_id": JSON(ids[0]), "origin_id": JSON(ids[0])]
            _ = try await expect(201, phone, "PUT", "file/f1", both)
            _ = try await expect(201, phone, "PUT", "file/f2", ["origin_id": JSON(ids[0])])
            let needed = try await expect(
                409, "has_children", phone, "DELETE", "folder/\(ids[0])?reassign_copy_id=\(ids[3])")
            #expect(
                needed["children"].array.sortedByText.map(\.description) == [
                    #"{"column":"copy_id","count":1,"table":"file"}"#,
                    #"{"column":"folder_id","count":1,"table":"file"}"#,
                    #"{"column":"parent_id","count":1,"table":"folder"}"#,
                ])
            func path(_ parent: String) -> String {
                "folder/\(ids[0])?reassign_copy_id=\(ids[3])&reassign_folder_id=\(ids[4])&reassign_parent_id=\(parent)"
            }
            // Below the folder itself, it would be its own ancestor.
            for below in [ids[1], ids[2]] {
                _ = try await expect(422, "change_refused", phone, "DELETE", path(below))
            }
            _ = try await expect(204, phone, "DELETE", path(ids[3]))
            let file = try await expect(200, phone, "GET", "file/f1")
            #expect(file["folder_id"].string == ids[4] && file["copy_id"].string == ids[3])
            #expect(file["origin_id"].string == ids[0])
            #expect(try await expect(200, phone, "GET", "folder/\(ids[1])")["parent_id"].string == ids[3])
            // One that references itself alone has no children.
            _ = try await expect(204, phone, "DELETE", "file/f1")
            _ = try await expect(204, phone, "DELETE", "folder/\(ids[4])")
        }
    }
}
