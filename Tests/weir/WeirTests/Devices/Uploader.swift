import Foundation
import Testing

/// A device that uploads batches, and counts those that were acknowledged.
struct Uploader {
    let client: DeviceClient
    var acknowledged = 0

    init(_ weir: WeirProcess, syncID: String = "abc") { client = DeviceClient(port: weir.port, syncID: syncID) }

    mutating func upload() async throws -> DeviceClient.Answer {
        let change = TestDevice.change(
            "row", ["name": JSON(String(repeating: "x", count: 20_000)), "email": JSON("\(acknowledged + 1)")])
        let answer = try await client.post(
            "/v1/upload",
            ["knowledgeId": "k1", "batch": JSON(acknowledged + 1), "changes": JSON([change.value])])
        if answer.status == 202 { acknowledged += 1 }
        return answer
    }

    /// Uploads until the server rejects a batch; its answer.
    mutating func uploadUntilRejected() async throws -> DeviceClient.Answer {
        while true {
            let answer = try await upload()
            if answer.status != 202 { return answer }
        }
    }

    /// Uploads until the server accepts a batch.
    mutating func uploadUntilAccepted() async throws {
        while try await upload().status != 202 {}
    }

    /// Waits until everything acknowledged can be pulled, with every batch counted once.
    func expectEverything() async throws {
        // Each request waits for the outcome as long as the server allows.
        var pull: DeviceClient.Answer
        repeat {
            pull = try await client.post("/v1/pull", ["knowledgeId": "k1", "include": [JSON(acknowledged)]])
            #expect([200, 503, 504].contains(pull.status))
        } while pull.status != 200
        let rows = try pull.json()["changes"]
        #expect(rows[0]["version"].int == acknowledged)
        #expect(rows[0]["values"]["email"].string == "\(acknowledged)")
    }
}
