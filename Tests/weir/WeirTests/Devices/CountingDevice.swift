import Foundation
import Seeded
import Testing

/// A device that writes the same rows with each batch, so that a row's version counts the batches that were applied.
///
/// It repeats each batch that got no answer under the same number, as the contract asks of clients.
struct CountingDevice: Sendable {
    /// Its batches count from 1 without a gap.
    var device: TestDevice
    /// The rows that it writes.
    let targets: [(owner: String, id: String)]
    /// Whether the last batch got no answer.
    private var isUnanswered = false
    /// The results of each batch that was answered.
    private var results: [Int: JSON] = [:]
    /// The newest timeStamp of each owner's rows in an answer.
    private var newest: [String: Int] = [:]
    /// The row that batches without a number write: its last known version, and how many writes got no answer since.
    ///
    /// Only the log's offsets keep such a batch from being applied twice.
    private var unnumbered = (version: 0, unanswered: 0)

    init(
        port: UInt16, syncID: String = "abc", knowledgeID: String = "k1", links: String? = nil,
        owners: [String] = ["abc"]
    ) {
        device = TestDevice(port: port, syncID: syncID, knowledgeID: knowledgeID, links: links)
        targets = owners.flatMap { owner in (0..<3).map { (owner, "\(knowledgeID)-\($0)") } }
    }

    /// Sends one request at random.
    mutating func play(_ random: inout SeededRandom) async throws {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: try await repeatOne(&random)
        case 1 where !isUnanswered: try await uploadOnly()
        case 2: try await writeUnnumbered()
        default: try await writeOne()
        }
    }

    /// Writes the next batch, or the one that got no answer, and checks every outcome that the server must still know.
    ///
    /// May be repeated after a failure.
    mutating func settle() async throws {
        try await writeOne()
        try await writeUnnumbered()
        for (number, results) in results where number > device.batch - 16 {
            let answer = try await device.client.get(
                "/v1/batches/\(number)?knowledgeId=\(device.knowledgeID)")
            if [202, 429, 503].contains(answer.status) {
                throw DeviceClient.Failure(description: "batch \(number) is not known yet", status: answer.status)
            }
            #expect(try answer.json()["batch"]["results"] == results, "the outcome of batch \(number)")
        }
        try await device.drain(limit: 5)
    }

    private func changes(of batch: Int) -> [JSON] {
        targets.map { target in
            TestDevice.change(target.id, ["name": JSON("\(batch)"), "email": JSON(device.knowledgeID)])
                .with("syncId", JSON(target.owner))
        }
    }

    /// Syncs the next batch, or the one that got no answer under its number.
    private mutating func writeOne() async throws {
        if isUnanswered { device.batch -= 1 }
        isUnanswered = true
        let number = device.batch + 1
        let answer = try await device.sync(changes(of: number))
        isUnanswered = false
        check(answer["batch"]["results"], of: number)
        results[number] = answer["batch"]["results"]
    }

    /// Uploads the next batch without waiting for its outcome.
    private mutating func uploadOnly() async throws {
        isUnanswered = true
        device.batch += 1
        let request: JSON = [
            "knowledgeId": JSON(device.knowledgeID), "batch": JSON(device.batch),
            "changes": JSON(changes(of: device.batch).map(\.value)),
        ]
        let answer = try await device.client.post("/v1/upload", request)
        if [429, 503].contains(answer.status) {
            throw DeviceClient.Failure(description: "the upload was rejected", status: answer.status)
        }
        #expect(answer.status == 202)
        isUnanswered = false
    }

    /// Syncs a batch without a number: it is applied once if it was answered, and at most once if not.
    private mutating func writeUnnumbered() async throws {
        let id = device.knowledgeID + "-unnumbered"
        let possible = unnumbered.version + 1...unnumbered.version + unnumbered.unanswered + 1
        unnumbered.unanswered += 1
        let answer = try await device.client.sync([
            "knowledgeId": JSON(device.knowledgeID),
            "changes": JSON([TestDevice.change(id, ["name": "unnumbered"]).value]),
        ])
        let version = answer["batch"]["results"][0]["version"].int ?? 0
        #expect(possible.contains(version), "\(id): version \(version) of \(possible)")
        unnumbered = (version, 0)
    }

    /// Repeats a batch that was answered.
    private func repeatOne(_ random: inout SeededRandom) async throws {
        guard let number = results.keys.filter({ $0 > device.batch - 8 }).sorted().randomElement(using: &random) else {
            return
        }
        let answer = try await device.client.sync([
            "knowledgeId": JSON(device.knowledgeID), "batch": JSON(number),
            "changes": JSON(changes(of: number).map(\.value)),
        ])
        #expect(answer["batch"]["results"] == results[number], "the first outcome of batch \(number)")
    }

    /// Expects each row's version to be the batch's number: no batch is missing, applied twice or out of order.
    private mutating func check(_ results: JSON, of batch: Int) {
        #expect(results.array.count == targets.count)
        for (target, result) in zip(targets, results.array) {
            #expect(result["status"].string == "applied")
            #expect(result["version"].int == batch, "\(device.knowledgeID) \(target)")
            let timeStamp = result["timeStamp"].int ?? 0
            #expect(timeStamp > newest[target.owner] ?? 0, "\(device.knowledgeID) \(target)")
            newest[target.owner] = timeStamp
        }
    }

    /// Expects a drained device to hold each of this device's rows, with every batch counted once.
    func expectEveryBatchOnce(in fresh: TestDevice) {
        let name = device.knowledgeID
        let own = fresh.rows.values.filter { $0["values"]["email"].string == name }
        #expect(own.count == targets.count, "\(name)")
        for row in own {
            #expect(row["version"].int == device.batch, "\(name)")
            #expect(row["values"]["name"].string == "\(device.batch)", "\(name)")
        }
    }
}

// MARK: - Retries

extension CountingDevice {
    /// Writes the next batch, and retries until it has its outcome.
    mutating func write() async throws {
        try await Retry.untilAnswered { try await settle() }
    }

    /// The device after another batch.
    func written() async throws -> CountingDevice {
        var device = self
        try await device.write()
        return device
    }

    /// The device after as many batches as it could write before a flag was set.
    func written(until flag: StopFlag) async throws -> CountingDevice {
        var device = self
        while !flag.isSet { try await device.write() }
        return device
    }

    /// A new device that holds everything of the owner; every batch is counted once.
    func drained() async throws -> TestDevice {
        var fresh = TestDevice(
            port: device.client.port, syncID: device.client.headers["X-Sync-Id"] ?? "", knowledgeID: "new")
        try await Retry.untilAnswered { try await fresh.drain() }
        expectEveryBatchOnce(in: fresh)
        return fresh
    }
}

/// How devices repeat requests that a server could not answer.
enum Retry {
    /// Whether the request may be repeated: no answer arrived, or the server asks for a retry.
    static func applies(to failure: DeviceClient.Failure) -> Bool {
        guard let status = failure.status else { return true }
        return [202, 429, 503, 504].contains(status)
    }

    /// The pause before a retry, shorter than servers ask for.
    static func pause() async throws { try await Task.sleep(for: .milliseconds(100)) }

    /// Repeats a request until the server answers it.
    static func untilAnswered<Value>(_ body: () async throws -> Value) async throws -> Value {
        while true {
            do {
                return try await body()
            } catch let failure as DeviceClient.Failure where applies(to: failure) {
                try await pause()
            }
        }
    }
}
