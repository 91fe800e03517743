import Foundation
import Testing

/// A caller that may read and write the rows of another owner.
@Suite(.timeLimit(.minutes(5))) struct LinkedOwnerTests {
    /// Faces serve the caller's own syncId alone; rows of linked owners are for clients of `/v1`.
    @Test func aFaceShowsAndWritesTheCallersOwnRowsAlone() async throws {
        let folder = try TestFolder()
        try folder.write(
            "tables:\n  note:\n    policy: lastWriteWins\n    columns:\n      title: text\n", to: "schema.yaml")
        let weir = try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder, settings: ["faces": "crud,rest,sqlitenow,tracker"])
        let theirs = DeviceClient(port: weir.port, syncID: "def")
        for (client, id) in [(theirs, "theirs"), (DeviceClient(port: weir.port, syncID: "abc"), "own")] {
            let change = TestDevice.change(id, ["title": JSON(id)], table: "note")
            _ = try await client.sync(["knowledgeId": JSON("writer of \(id)"), "changes": JSON([change.value])])
        }
        let phone = DeviceClient(
            port: weir.port, headers: ["X-Sync-Id": "abc", "X-Sync-Links": "def:write", "X-Device-Id": "phone"])
        let pulled = try await phone.sync(["knowledgeId": "phone"], to: "/v1/pull")["changes"].array
        #expect(Set(pulled.compactMap { $0["id"].string }) == ["own", "theirs"])
        let lists = [
            ("/rest/note?ts=0", "id"), ("/api/note", "id"), ("/api/note?limit=10", "id"), ("/tracker/note", "serverId"),
        ]
        for (path, name) in lists {
            #expect(try await phone.get(path).json().array.map { $0[name] } == ["own"], "\(path)")
        }
        let window = try await phone.get("/sync/download?after=0&limit=10&includeSelf=true").json()["changes"]
        #expect(window.array.map { $0["pk"] } == ["own"])
        let devices = try await phone.get("/tracker/devices").json().array
        #expect(devices.map { $0["installationId"] } == ["writer of own"])
        // Requests that name the other owner's row are about one that the caller does not have.
        #expect(try await phone.get("/api/note/theirs").status == 404)
        let edit: JSON = ["id": "theirs", "title": "edited", "Ts": 1]
        #expect(try await phone.send("PUT", "/rest/note", edit).status == 404)
        let document: JSON = ["title": "edited", "updatedOn": "2026-05-01T08:00:00Z"]
        #expect(try await phone.send("PUT", "/tracker/note/theirs", document).status == 404)
        #expect(try await phone.delete("/api/note/theirs").status == 204)
        #expect(try await phone.send("PUT", "/api/note/theirs", ["title": "edited"]).status == 201)
        let rows = try await theirs.sync(["knowledgeId": "reader"], to: "/v1/pull")["changes"].array
        #expect(rows.map { $0["values"]["title"] } == ["theirs"])
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}
