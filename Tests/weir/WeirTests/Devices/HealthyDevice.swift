import Testing

/// A device that syncs while other requests fail, and must not be affected.
struct HealthyDevice {
    private var device: TestDevice
    private let table: String
    private var rows = 0

    /// - Parameter table: has a column `name`.
    init(_ weir: WeirProcess, table: String = "person") {
        device = TestDevice(weir, syncID: "bystander", knowledgeID: "k1")
        self.table = table
    }

    /// Syncs while work runs.
    mutating func watch<Result: Sendable>(
        _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        async let result = work()
        try await sync()
        return try await result
    }

    /// Writes a row and expects that it is applied.
    mutating func sync() async throws {
        rows += 1
        let answer = try await device.sync([TestDevice.change("row\(rows)", ["name": JSON("\(rows)")], table: table)])
        #expect(TestDevice.verdicts(answer) == ["applied"], "row \(rows)")
    }

    /// Syncs once more, and checks that everything it wrote is on the server, and nothing else.
    mutating func check(_ weir: WeirProcess) async throws {
        try await sync()
        var other = TestDevice(weir, syncID: "bystander", knowledgeID: "k2")
        try await other.drain()
        #expect(other.rows.count == rows)
        #expect(device.visible == other.visible)
    }
}
