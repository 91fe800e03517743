import Foundation
import Testing

/// Flows of Locify's document in which requests and answers are lost, or the device is offline.
extension CrudScene {
    /// Each request fails once: the record keeps its status, and the next sync sends it.
    func failOnline(_ failure: CrudDevice.Network, _ phone: CrudDevice, _ laptop: CrudDevice) async throws {
        func expectPending(_ status: String, _ name: String?) async throws {
            #expect(try phone.record("category", "c1")?["sync_status"].string == status)
            // A GET that fails shows what is stored.
            #expect(try await phone.get("category").map { $0["name"].string } == (name.map { [$0] } ?? []))
            phone.network = { _ in .works }
            // Also one that works does not overwrite what is to be sent.
            #expect(try await phone.get("category").map { $0["name"].string } == (name.map { [$0] } ?? []))
            try await phone.sync()
            try await expectEqual([phone, laptop])
            phone.network = { _ in failure }
        }
        phone.network = { _ in failure }
        try await phone.create("category", "c1", ["name": "A"])
        try await expectPending("pendingCreate", "A")
        phone.now = 60
        try await phone.update("category", "c1", ["name": "B"])
        try await expectPending("pendingUpdate", "B")
        #expect(try laptop.record("category", "c1")?["name"] == "B")
        try await phone.delete("category", "c1")
        try await expectPending("pendingDelete", nil)
        #expect(try laptop.stored("category") == [])
        #expect(phone.conflicts == [] && phone.gone == [] && phone.refused == [])
    }

    /// A device edits offline, also what was never sent.
    func editOffline(_ phone: CrudDevice, _ laptop: CrudDevice) async throws {
        for id in ["kept", "edited", "deleted"] { try await phone.create("category", id, ["name": "A"]) }
        phone.isOnline = false
        phone.now = 60
        try await phone.create("category", "new", ["name": "B"])
        try await phone.update("category", "edited", ["name": "B"])
        try await phone.delete("category", "deleted")
        // What was never sent: edited and deleted.
        try await phone.create("category", "new2", ["name": "B"])
        try await phone.update("category", "new2", ["name": "C"])
        try await phone.create("category", "never", ["name": "B"])
        try await phone.delete("category", "never")
        let statuses = try phone.stored("category").map { $0["sync_status"].string }
        #expect(
            statuses == [
                "pendingDelete", "pendingUpdate", "synced", "pendingDelete", "pendingCreate", "pendingUpdate",
            ])
        // No request is made, and the deleted are hidden.
        #expect(try await phone.get("category").map { $0["id"] } == ["edited", "kept", "new", "new2"])
        #expect(try await records("category", as: phone).count == 3)
        phone.isOnline = true
        try await expectEqual([phone, laptop])
        #expect(try laptop.shown("category").map { $0["name"] } == ["B", "A", "B", "C"])
        #expect(phone.conflicts == [] && phone.gone == [] && phone.refused == [])
    }

    /// Each answer of a sync is lost once; what was stored is not stored again.
    func loseAnswersOfASync(_ phone: CrudDevice, _ laptop: CrudDevice) async throws {
        try await phone.create("category", "c0", ["name": "A"])
        try await phone.create("location", "l0", ["name": "A", "category_id": "c0"])
        try await phone.create("category", "c1", ["name": "A"])
        phone.isOnline = false
        phone.now = 60
        try await phone.create("category", "c2", ["name": "B"])
        try await phone.update("category", "c1", ["name": "B"])
        try await phone.delete("category", "c0", reassign: "c2")
        phone.isOnline = true
        for (count, method) in ["POST", "PUT", "DELETE"].enumerated() {
            phone.network = { $0.hasPrefix(method) ? .losesAnswer : .works }
            try await phone.sync()
            #expect(phone.failures == count + 1)
            #expect(try phone.pending().count == 3 - count)
            phone.now = phone.nextSync
        }
        #expect(try await records("category", as: phone).map { $0["name"] } == ["B", "B"])
        phone.network = { _ in .works }
        try await phone.sync()
        #expect(try phone.pending() == [])
        try await expectEqual([phone, laptop])
        #expect(try phone.record("location", "l0")?["category_id"] == "c2")
        #expect(phone.conflicts == [] && phone.gone == [] && phone.refused == [])
    }
}
