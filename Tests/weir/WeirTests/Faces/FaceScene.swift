import Foundation
import Testing

/// A server with a face, and what other devices do with it.
protocol FaceScene {
    var port: UInt16 { get }
}

extension FaceScene {
    /// A write of another device with the client contract; the row's timeStamp.
    @discardableResult
    func write(
        _ device: String, _ table: String, _ id: String, _ values: JSON, base: Int? = nil, isDelete: Bool = false
    ) async throws -> Int {
        var change = TestDevice.change(id, values, table: table).with("deleted", JSON(isDelete))
        if let base { change = change.with("base", JSON(base)) }
        let client = DeviceClient(port: port, syncID: "abc")
        let answer = try await client.sync(["knowledgeId": JSON(device), "changes": JSON([change.value])])
        return try #require(answer["batch"]["results"][0]["timeStamp"].int, "\(answer)")
    }
}
