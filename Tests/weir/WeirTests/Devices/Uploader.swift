import Foundation
import Testing

/// A device that uploads, and remembers what was acknowledged.
struct Uploader {
    let client: DeviceClient
    var acknowledged = 0

    init(_ weir: WeirProcess, syncID: String = "abc") { client = DeviceClient(port: weir.port, syncID: syncID) }

    /// Uploads the next batch.
    mutating func upload() async throws -> DeviceClient.Answer {
        let change = TestDevice.change(
            "row", ["name": JSON(String(repeating: "x", count: 20_000)), "email": JSON("\(acknowledged + 1)")])
        let answer = try await client.post(
            "/v1/upload",
            ["knowledgeId": "k1", "batch": JSON(acknowledged + 1), "changes": JSON([change.value])])
        if answer.status == 202 { acknowledged += 1 }
        return answer
    }

    /// Uploads until the server refuses; what it says then.
    mutating func uploadUntilRefused() async throws -> DeviceClient.Answer {
        while true {
            let answer = try await upload()
            if answer.status != 202 { return answer }
        }
    }

    /// Uploads again and again until the server takes it.
    mutating func uploadUntilTaken() async throws {
        while try await upload().status != 202 {}
    }

    /// Waits until all that was acknowledged can be pulled; every batch counted once.
    func expectEverything() async throws {
        // Each attempt waits for the outcome as long as the server lets it.
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
