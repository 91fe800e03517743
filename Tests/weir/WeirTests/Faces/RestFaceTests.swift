import Foundation
import Testing

/// Clients of the REST Ts/Dirty document against a running server.
@Suite(.timeLimit(.minutes(5))) struct RestFaceTests {
    private func withServer(
        _ settings: [String: String] = [:], _ body: (RestScene) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        let weir = try await RestScene.start(in: folder, settings)
        try await body(RestScene(port: weir.port, folder: folder))
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    @Test func devicesExchangeRecords() async throws {
        try await withServer { scene in
            let (phone, laptop) = (try scene.device("phone"), try scene.device("laptop"))
            try phone.insert("category", "c1", ["name": "Home"])
            try phone.insert("item", "i1", ["title": "Milk", "category_id": "c1"])
            try await phone.sync()
            try await laptop.sync()
            #expect(try laptop.row("item", "i1")?["title"] == "Milk")
            try laptop.update("item", "i1", ["title": "Oat milk"])
            try await laptop.sync()
            try phone.delete("category", "c1")
            try await phone.sync()
            #expect(try phone.row("item", "i1")?["title"] == "Oat milk")
            #expect(try phone.row("category", "c1") == nil)
            try await laptop.sync()
            #expect(try laptop.row("category", "c1") == nil)
            #expect(phone.conflicts.isEmpty && laptop.conflicts.isEmpty)
            try await scene.expectEqual([phone, laptop])
        }
    }

    @Test func anOlderEditLosesAndIsNamed() async throws {
        try await withServer { scene in
            let (phone, laptop) = (try scene.device("phone"), try scene.device("laptop"))
            try phone.insert("category", "c1", ["name": "A"])
            try await phone.sync()
            try await laptop.sync()
            try phone.update("category", "c1", ["name": "B"])
            try laptop.update("category", "c1", ["name": "C"])
            try await phone.sync()
            try await laptop.sync()
            #expect(laptop.conflicts == ["c1"])
            #expect(try laptop.row("category", "c1")?["name"] == "B")
            try await scene.expectEqual([phone, laptop])
        }
    }

    /// Another device writes at each moment of a sync: new rows, rows that the device is about to upload, and deletes.
    @Test func anotherDeviceWritesBetweenAnyTwoSteps() async throws {
        try await withServer { scene in try await scene.writeBetweenAnyTwoSteps() }
    }

    /// The document's hole: the greatest Ts is that of an own upload, and another device wrote just before it.
    @Test func rowsBelowAnOwnUploadAreNotSkipped() async throws {
        try await withServer { scene in try await scene.leaveNoHole() }
    }

    /// A sync ends where an answer is lost, and the next one gets everything, however often that happens.
    @Test func aDownloadWhoseAnswerWasLostIsNoProof() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            try phone.insert("category", "c0", ["name": "phone"])
            try await phone.sync()
            for round in 1...3 {
                try phone.insert("category", "own\(round)", ["name": "phone"])
                try await phone.sync()
                try await scene.write("laptop", "category", "c\(round)", ["name": "A"])
                for table in ["category", "item", "category"] {
                    phone.losesAnswer = { $0.hasPrefix("GET /rest/\(table)") }
                    await #expect(throws: RestDevice.LostAnswer.self) { try await phone.sync() }
                }
                phone.losesAnswer = { _ in false }
                try phone.update("category", "c0", ["name": "phone, \(round)"])
                try await phone.sync()
            }
            try await scene.expectEqual([phone])
            #expect(phone.conflicts.isEmpty)
        }
    }

    /// An upload that arrives late, after a later download whose answer was lost, proves nothing: the device does not know its Ts.
    @Test func anUploadThatArrivesLateIsNoProof() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            try phone.insert("category", "c0", ["name": "phone"])
            try await phone.sync()
            let ts = try phone.latestTs("category")
            try await scene.write("laptop", "category", "c1", ["name": "A"])
            try await phone.request("GET", "/rest/category?ts=\(ts)")
            try await phone.request("POST", "/rest/category", ["id": "late", "name": "B"])
            let next = try await phone.request("GET", "/rest/category?ts=\(ts)").json().array
            #expect(next.compactMap { $0["id"].string } == ["c1", "late"])
        }
    }

    /// Rows that came with the download of a sync that also uploads do not come again: a dirty one would look like a conflict.
    @Test func anEditOfARowThatCameBeforeAnUploadIsKept() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            for round in 1...3 {
                try await scene.write("laptop", "category", "c\(round)", ["name": "A"])
                try phone.insert("category", "own\(round)", ["name": "phone"])
                try await phone.sync()
                try phone.update("category", "c\(round)", ["name": "B"])
                try await phone.sync()
                #expect(try phone.row("category", "c\(round)")?["name"] == "B")
            }
            #expect(phone.conflicts.isEmpty)
            try await scene.expectEqual([phone])
        }
    }

    /// Another device edits or deletes the newest row meanwhile, and the device uploads nothing that would show what it has.
    @Test(arguments: [false, true]) func anEditOfARowThatCameIsKeptWhereTheNewestRowMovesOn(deletes: Bool) async throws
    {
        try await withServer { scene in
            let phone = try scene.device("phone")
            try await scene.write("laptop", "category", "c1", ["name": "A"])
            for round in 1...3 {
                try await scene.write("laptop", "category", "newest", ["name": JSON("A, \(round)")])
                try await phone.sync()
            }
            try phone.update("category", "c1", ["name": "B"])
            try await scene.write("laptop", "category", "newest", ["name": "C"], isDelete: deletes)
            try await phone.sync()
            #expect(phone.conflicts.isEmpty)
            #expect(try phone.row("category", "c1")?["name"] == "B")
            try await scene.expectEqual([phone])
        }
    }

    /// A conflict shows as well as a stored upload that the device has what was downloaded before.
    @Test func editsOfRowsThatCameBeforeAConflictAreKept() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            try phone.insert("category", "c0", ["name": "phone"])
            try await phone.sync()
            try await scene.write("laptop", "category", "c1", ["name": "A"])
            try await scene.write("laptop", "category", "c2", ["name": "A"])
            try phone.update("category", "c0", ["name": "phone, 2"])
            // Before the upload of c0, and after the downloads.
            phone.hook = { moment in
                guard moment == 7 else { return }
                try await scene.write("laptop", "category", "c0", ["name": "laptop"])
            }
            try await phone.sync()
            phone.hook = nil
            #expect(phone.conflicts == ["c0"])
            // Also the record that the conflict showed is not sent again.
            for id in ["c0", "c1"] { try phone.update("category", id, ["name": "B"]) }
            try await phone.sync()
            #expect(phone.conflicts == ["c0"])
            for id in ["c0", "c1"] { #expect(try phone.row("category", id)?["name"] == "B") }
            try await scene.expectEqual([phone])
        }
    }

    /// The answer was lost, and a conflict has shown its newest row.
    @Test func theNewestRowOfAnAnswerIsNoProofWhereAConflictShowedIt() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            let first = try await scene.write("laptop", "category", "c1", ["name": "A"])
            try await scene.write("laptop", "category", "c2", ["name": "B"])
            let newest = try await scene.write("laptop", "category", "c1", ["name": "C"], base: first)
            try await phone.request("GET", "/rest/category?ts=0")
            let refused = try await phone.request(
                "PUT", "/rest/category", ["id": "c1", "name": "D", "Ts": JSON(first)])
            #expect(try refused.json()["record"]["Ts"].int == newest)
            try await scene.write("laptop", "category", "c1", ["name": "E"])
            let next = try await phone.request("GET", "/rest/category?ts=\(newest)").json().array
            #expect(next.compactMap { $0["id"].string } == ["c2", "c1"])
        }
    }

    @Test func theRecordOfAConflictIsNoProof() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            let first = try await scene.write("laptop", "category", "c1", ["name": "A"])
            try await scene.write("laptop", "category", "c2", ["name": "B"])
            let newest = try await scene.write("laptop", "category", "c1", ["name": "C"], base: first)
            let refused = try await phone.request(
                "PUT", "/rest/category", ["id": "c1", "name": "D", "Ts": JSON(first)])
            #expect(refused.status == 409)
            let record = try refused.json()["record"]
            #expect(record == ["id": "c1", "name": "C", "Ts": JSON(newest), "Deleted": false])
            // The device has c1, whose Ts it names, and not c2, which is below.
            for _ in 0..<2 {
                let next = try await phone.request("GET", "/rest/category?ts=\(newest)").json().array
                #expect(next.compactMap { $0["id"].string } == ["c2"])
            }
            // A later row that it can have from a download alone.
            let later = try await scene.write("laptop", "category", "c3", ["name": "E"])
            let proof = try await phone.request("GET", "/rest/category?ts=\(later)").json().array
            #expect(proof.isEmpty)
        }
    }

    /// Rows that the device has shown to have are not sent again: a dirty one would look like a conflict.
    @Test func whatADeviceHasShownToHaveIsNotSentAgain() async throws {
        try await withServer { scene in
            let phone = try scene.device("phone")
            let last = try await scene.write("laptop", "category", "c1", ["name": "A"])
            try await phone.sync()
            try await phone.sync()
            try phone.insert("category", "c2", ["name": "B"])
            try await phone.sync()
            try phone.update("category", "c1", ["name": "C"])
            try await phone.sync()
            #expect(phone.conflicts.isEmpty)
            #expect(try phone.row("category", "c1")?["name"] == "C")
            // A device that has lost its file asks from the beginning, whatever it had shown.
            let all = try await phone.request("GET", "/rest/category?ts=0").json().array
            #expect(all.count == 2)
            let below = try await phone.request("GET", "/rest/category?ts=\(last - 1)").json().array
            #expect(below.count == 2)
        }
    }

    @Test func whatADeviceHasShownOutlivesTheProcess() async throws {
        let folder = try TestFolder()
        for round in 0..<2 {
            let weir = try await RestScene.start(in: folder, [:])
            let scene = RestScene(port: weir.port, folder: folder)
            let phone = try scene.device("phone")
            if round == 0 {
                try await scene.write("laptop", "category", "c1", ["name": "A"])
                try await phone.sync()
                try await phone.sync()
                try phone.insert("category", "c2", ["name": "B"])
                try await phone.sync()
            } else {
                let next = try await phone.request("GET", "/rest/category?ts=\(phone.latestTs("category"))")
                #expect(try next.json().array.isEmpty)
            }
            #expect(await weir.stop() == 0)
        }
    }

    @Test func aColumnWithANameOfTheProtocolIsRefusedAtStart() async throws {
        let folder = try TestFolder()
        try folder.write("tables:\n  person:\n    columns:\n      ts: integer\n", to: "schema.yaml")
        let run = try await CommandRun.run(
            "run", "--schema", folder.path + "/schema.yaml", "--data", folder.path + "/data", "--address",
            "127.0.0.1:0", "--faces", "rest", in: folder)
        #expect(run.code != 0)
        #expect((run.output + run.errors).contains("the table person has a column ts"))
        let unknown = try await CommandRun.run("config", "--schema", "s", "--faces", "soap", in: folder)
        #expect(unknown.code == 64 && unknown.errors.contains("\"soap\" is no face"))
    }
}
