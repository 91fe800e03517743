import Foundation
import Testing

/// Clients of Locify's document against a running server: each flow, step by step.
@Suite(.timeLimit(.minutes(5))) struct CrudFaceTests {
    private func withServer(
        _ settings: [String: String] = [:], _ body: (CrudScene) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        let weir = try await CrudScene.start(in: folder, settings)
        try await body(CrudScene(port: weir.port, folder: folder))
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    // MARK: Online

    @Test func onlineEachEditIsSentAtOnce() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            // Create: the local record is the server's answer.
            try await phone.create("category", "c1", ["name": "Food"])
            let made = try #require(try phone.record("category", "c1"))
            #expect(made["sync_status"] == "synced" && made["user_id"] == "abc")
            #expect(made["updated_at"].string == phone.time && made["created_at"].string != nil)
            #expect(try await scene.records("category") == [made])
            // Update.
            phone.now = 60
            try await phone.update("category", "c1", ["name": "Restaurants"])
            let changed = made.with("name", "Restaurants").with("updated_at", JSON(phone.time))
            #expect(try phone.record("category", "c1") == changed)
            #expect(try await scene.records("category") == [changed])
            // Get.
            let laptop = try scene.device("laptop")
            #expect(try await laptop.get("category") == [changed])
            // Delete.
            try await phone.delete("category", "c1")
            #expect(try phone.stored("category") == [])
            #expect(try await scene.records("category") == [])
            #expect(try await laptop.get("category") == [] && laptop.stored("category") == [])
        }
    }

    /// Each request fails once: the record keeps its status, and the next sync sends it.
    @Test(arguments: [CrudDevice.Network.losesRequest, .losesAnswer])
    func onlineAFailedRequestLeavesTheRecordPending(failure: CrudDevice.Network) async throws {
        try await withServer { scene in
            try await scene.failOnline(failure, try scene.device("phone"), try scene.device("laptop"))
        }
    }

    // MARK: Offline

    @Test func offlineEditsAreShownAndSentLater() async throws {
        try await withServer { scene in
            try await scene.editOffline(try scene.device("phone"), try scene.device("laptop"))
        }
    }

    /// Each answer of a sync is lost once; what was stored is not stored again.
    @Test func aSyncWhoseAnswersAreLostEndsEqual() async throws {
        try await withServer { scene in
            try await scene.loseAnswersOfASync(try scene.device("phone"), try scene.device("laptop"))
        }
    }

    @Test func failedSyncsAreRepeatedEverMoreSeldom() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            phone.isOnline = false
            try await phone.create("category", "c1", ["name": "A"])
            phone.isOnline = true
            var requests = 0
            phone.network = { _ in
                requests += 1
                return .losesRequest
            }
            var moments: [Int] = []
            for second in 0..<200 {
                phone.now = second
                let before = requests
                try await phone.sync()
                if requests > before { moments.append(second) }
            }
            #expect(moments == [0, 2, 6, 14, 30, 62, 126, 190])
            phone.network = { _ in .works }
            phone.now = 254
            try await phone.sync()
            #expect(phone.failures == 0 && phone.nextSync == 0)
            try await scene.expectEqual([phone])
            #expect(try phone.shown("category").count == 1)
        }
    }

    // MARK: Conflicts

    @Test func theLatestEditWinsWheneverItArrives() async throws {
        try await withServer { scene in
            let (phone, laptop) = (try scene.device("phone"), try scene.device("laptop"))
            try await phone.create("category", "c1", ["name": "A"])
            try await phone.create("category", "c2", ["name": "A"])
            _ = try await laptop.get("category")
            (phone.isOnline, laptop.isOnline) = (false, false)
            (phone.now, laptop.now) = (100, 200)
            try await phone.update("category", "c1", ["name": "phone"])
            try await laptop.update("category", "c1", ["name": "laptop"])
            (phone.now, laptop.now) = (400, 300)
            try await phone.update("category", "c2", ["name": "phone"])
            try await laptop.update("category", "c2", ["name": "laptop"])
            (phone.isOnline, laptop.isOnline) = (true, true)
            try await laptop.sync()
            try await phone.sync()
            #expect(phone.conflicts == ["c1"] && laptop.conflicts == [])
            try await scene.expectEqual([phone, laptop])
            #expect(try phone.shown("category").map { $0["name"] } == ["laptop", "phone"])
        }
    }

    @Test func whatOthersDeletedStaysDeleted() async throws {
        try await withServer { scene in
            let (phone, laptop) = (try scene.device("phone"), try scene.device("laptop"))
            for id in ["c1", "c2"] { try await phone.create("category", id, ["name": "A"]) }
            _ = try await laptop.get("category")
            laptop.isOnline = false
            laptop.now = 3600
            try await laptop.update("category", "c1", ["name": "B"])
            try await phone.delete("category", "c1")
            try await phone.delete("category", "c2")
            laptop.isOnline = true
            try await scene.expectEqual([laptop, phone])
            #expect(laptop.gone == ["c1"] && laptop.conflicts == [])
            #expect(try laptop.stored("category") == [])
        }
    }

    @Test func devicesExchangeRecords() async throws {
        try await withServer { scene in
            try await scene.exchange(try scene.device("phone"), try scene.device("laptop"))
        }
    }

    @Test func anotherDeviceWritesBetweenAnyTwoSteps() async throws {
        try await withServer { scene in try await scene.writeBetweenAnyTwoSteps() }
    }

    // MARK: Children

    /// A delete that needs a place for children waits on the device until the user has named one.
    @Test func aCategoryWithLocationsNeedsAPlaceForThem() async throws {
        try await withServer { scene in
            let (phone, laptop) = (try scene.device("phone"), try scene.device("laptop"))
            for id in ["c1", "c2"] { try await phone.create("category", id, ["name": "A"]) }
            for id in ["l1", "l2"] { try await phone.create("location", id, ["name": "A", "category_id": "c1"]) }
            try await phone.delete("category", "c1")
            #expect(phone.refused == ["409 category/c1"])
            #expect(try phone.pending() == ["c1"])
            phone.isOnline = false
            try await phone.delete("category", "c1", reassign: "c2")
            phone.isOnline = true
            try await scene.expectEqual([phone, laptop])
            #expect(try laptop.shown("category").map { $0["id"] } == ["c2"])
            #expect(try laptop.shown("location").map { $0["category_id"] } == ["c2", "c2"])
        }
    }

    /// Devices make and move children of a category while others delete it: a child that was ordered before the delete goes with the others.
    @Test func childrenAreReassignedWhateverIsWrittenMeanwhile() async throws {
        try await withServer { scene in
            for round in 0..<4 {
                let (old, new) = ("old-\(round)", "new-\(round)")
                let phone = scene.client("phone")
                for id in [old, new] {
                    let made = try await phone.post("/api/category", ["id": JSON(id), "name": "A"])
                    #expect(made.status == 201)
                }
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for writer in 0..<4 {
                        group.addTask {
                            let client = scene.client("w\(writer)")
                            for number in 0..<6 {
                                let id = "l-\(round)-\(writer)-\(number)"
                                let made = try await client.post(
                                    "/api/location", ["id": JSON(id), "name": "A", "category_id": JSON(old)])
                                #expect(made.status == 201)
                            }
                            return 201
                        }
                    }
                    group.addTask {
                        // The target is edited, too: only a conflict that is read again gets past it.
                        for number in 0..<6 {
                            let edited = try await scene.client("editor").send(
                                "PUT", "/api/category/\(new)", ["name": JSON("A\(number)")])
                            #expect(edited.status == 200)
                        }
                        return 200
                    }
                    group.addTask {
                        let body: JSON = ["reassign_category_id": JSON(new)]
                        // Others write the same records: the request is repeated.
                        var status = 503
                        while status == 503 {
                            status = try await scene.client("deleter").send("DELETE", "/api/category/\(old)", body)
                                .status
                        }
                        return status
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses.sorted() == [200, 201, 201, 201, 201, 204])
                let rows = try await scene.rows()
                let deleted = try #require(rows.first { $0["id"].string == old }?["timeStamp"].int)
                let late = rows.filter { $0["values"]["category_id"].string == old }
                #expect(late.allSatisfy { $0["timeStamp"].int ?? 0 > deleted }, "\(late)")
                // The same request again moves those that came later.
                let again = try await phone.send(
                    "DELETE", "/api/category/\(old)?reassign_category_id=\(new)", nil as Data?)
                #expect(again.status == 204)
                try await scene.expectNoOrphans()
                #expect(try await scene.records("location").count == 24 * (round + 1))
            }
        }
    }

    @Test func anAnswerHasWhatTheDeviceWrote() async throws {
        let folder = try TestFolder()
        var written: [String] = []
        for round in 0..<2 {
            let weir = try await CrudScene.start(in: folder)
            let scene = CrudScene(port: weir.port, folder: folder)
            let phone = scene.client("phone")
            for number in 0..<20 {
                let id = "c\(round)-\(number)"
                #expect(try await phone.post("/api/category", ["id": JSON(id), "name": "A"]).status == 201)
                written.append(id)
                let ids = try await phone.get("/api/category").json().array.compactMap { $0["id"].string }
                #expect(ids.sorted() == written.sorted())
            }
            #expect(await weir.stop() == 0)
        }
    }
}
