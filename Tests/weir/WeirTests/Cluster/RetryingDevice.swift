import Testing

/// A device that writes the same rows, and asks until every batch has its outcome.
struct RetryingDevice: Sendable {
    private var device: FaithfulDevice
    private let port: UInt16

    init(port: UInt16) {
        self.port = port
        device = FaithfulDevice(port: port, syncID: "abc", knowledgeID: "k1", owners: ["abc"])
    }

    /// Writes the next batch.
    mutating func write() async throws {
        try await Patience.insist { try await device.settle() }
    }

    /// The device after another batch.
    func written() async throws -> RetryingDevice {
        var device = self
        try await device.write()
        return device
    }

    /// The device after as many batches as it could write before a flag was set.
    func written(until flag: StopFlag) async throws -> RetryingDevice {
        var device = self
        while !flag.isSet { try await device.write() }
        return device
    }

    /// A new device that holds everything; every batch counted once.
    func drained() async throws -> TestDevice {
        var fresh = TestDevice(port: port, syncID: "abc", knowledgeID: "new")
        try await Patience.insist { try await fresh.drain() }
        let own = fresh.rows.values.filter { $0["values"]["email"].string == "k1" }
        #expect(own.map { $0["version"].int } == Array(repeating: device.device.batch, count: 3))
        return fresh
    }
}

/// How devices take it when a server cannot answer.
enum Patience {
    /// Whether the request may be sent again: nothing came, or the server asked for patience.
    static func covers(_ failure: DeviceClient.Failure) -> Bool {
        guard let status = failure.status else { return true }
        return [202, 503, 504].contains(status)
    }

    /// What a device does before it asks again, so as not to be a burden; shorter than servers ask for.
    static func rest() async throws { try await Task.sleep(for: .milliseconds(100)) }

    /// Does something that may be repeated, until nothing that passes stands in the way.
    static func insist<Value>(_ body: () async throws -> Value) async throws -> Value {
        while true {
            do {
                return try await body()
            } catch let failure as DeviceClient.Failure where covers(failure) {
                try await rest()
            }
        }
    }
}
