import Foundation
import Seeded
import Testing

/// A device that writes the same rows with each batch, so that every answer tells how many of its batches were applied, and
/// that repeats what it got no answer to, as the contract asks of clients.
struct FaithfulDevice: Sendable {
    /// The device; its batches count from 1 without a gap.
    var device: TestDevice
    /// Whose rows it writes, and the rows' ids.
    let targets: [(owner: String, id: String)]
    /// The batch that got no answer.
    private var isUnanswered = false
    /// What the server said of each batch.
    private var told: [Int: JSON] = [:]
    /// The newest timeStamp that the device was told of each owner's rows.
    private var newest: [String: Int] = [:]
    /// A row that batches without a number write, which nothing but the log's own offsets protects: the version told last,
    /// and how many were sent since without an answer.
    private var loose = (version: 0, unanswered: 0)

    init(_ weir: WeirProcess, syncID: String, knowledgeID: String, links: String? = nil, owners: [String]) {
        self.init(port: weir.port, syncID: syncID, knowledgeID: knowledgeID, links: links, owners: owners)
    }

    init(port: UInt16, syncID: String, knowledgeID: String, links: String? = nil, owners: [String]) {
        device = TestDevice(port: port, syncID: syncID, knowledgeID: knowledgeID, links: links)
        targets = owners.flatMap { owner in (0..<3).map { (owner, "\(knowledgeID)-\($0)") } }
    }

    /// Writes until there is no server any more.
    mutating func write(to weir: WeirProcess, until end: EndOfServer, _ random: inout SeededRandom) async throws {
        device.turn(to: weir.port)
        while true {
            await end.note()
            do {
                try await play(&random)
            } catch let failure as DeviceClient.Failure where end.explains(failure) {
                return
            }
            await end.note()
        }
    }

    /// Does one thing.
    mutating func play(_ random: inout SeededRandom) async throws {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: try await repeatOne(&random)
        case 1 where !isUnanswered: try await uploadOnly()
        case 2: try await writeLoose()
        default: try await writeOne()
        }
    }

    /// Sends what is unanswered, and holds every batch of which the server must still know the outcome against what it said.
    mutating func settle(on weir: WeirProcess) async throws {
        device.turn(to: weir.port)
        try await settle()
    }

    /// The same on the server that the device faces; may be tried again where an answer failed to come.
    mutating func settle() async throws {
        try await writeOne()
        try await writeLoose()
        for (number, results) in told where number > device.batch - 16 {
            let answer = try await device.client.get(
                "/v1/batches/\(number)?knowledgeId=\(device.knowledgeID)")
            if [202, 503].contains(answer.status) {
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
        told[number] = answer["batch"]["results"]
    }

    /// Sends the next batch and is content that it is durable.
    private mutating func uploadOnly() async throws {
        isUnanswered = true
        device.batch += 1
        let request: JSON = [
            "knowledgeId": JSON(device.knowledgeID), "batch": JSON(device.batch),
            "changes": JSON(changes(of: device.batch).map(\.value)),
        ]
        let answer = try await device.client.post("/v1/upload", request)
        if answer.status == 503 { throw DeviceClient.Failure(description: "not taken", status: 503) }
        #expect(answer.status == 202)
        isUnanswered = false
    }

    /// The id of the row that batches without a number write.
    var looseID: String { device.knowledgeID + "-loose" }

    /// Syncs a batch without a number: it counts once if it was answered, and once at most if not.
    private mutating func writeLoose() async throws {
        let possible = loose.version + 1...loose.version + loose.unanswered + 1
        loose.unanswered += 1
        let answer = try await device.client.sync([
            "knowledgeId": JSON(device.knowledgeID),
            "changes": JSON([TestDevice.change(looseID, ["name": "loose"]).value]),
        ])
        let version = answer["batch"]["results"][0]["version"].int ?? 0
        #expect(possible.contains(version), "\(looseID): version \(version) of \(possible)")
        loose = (version, 0)
    }

    /// Sends a batch again that was answered.
    private func repeatOne(_ random: inout SeededRandom) async throws {
        guard let number = told.keys.filter({ $0 > device.batch - 8 }).sorted().randomElement(using: &random) else {
            return
        }
        let answer = try await device.client.sync([
            "knowledgeId": JSON(device.knowledgeID), "batch": JSON(number),
            "changes": JSON(changes(of: number).map(\.value)),
        ])
        #expect(answer["batch"]["results"] == told[number], "the first outcome of batch \(number)")
    }

    /// Each row's version counts the batches that were applied: none is missing, none came twice, and none overtook another.
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
}

/// A device that only reads, and sees no row go back.
struct WatchfulDevice: Sendable {
    var device: TestDevice

    init(_ weir: WeirProcess, syncID: String, knowledgeID: String, links: String? = nil) {
        device = TestDevice(weir, syncID: syncID, knowledgeID: knowledgeID, links: links)
    }

    /// Pulls until there is no server any more.
    mutating func read(from weir: WeirProcess, until end: EndOfServer, _ random: inout SeededRandom) async throws {
        device.turn(to: weir.port)
        while true {
            await end.note()
            let before = device.rows
            do {
                _ = try await device.sync(limit: Int.random(in: 1...8, using: &random))
            } catch let failure as DeviceClient.Failure where end.explains(failure) {
                return
            }
            for (key, row) in device.rows {
                #expect(row["version"].int ?? 0 >= before[key]?["version"].int ?? 0, "\(key) went back")
                #expect(row["timeStamp"].int ?? 0 >= before[key]?["timeStamp"].int ?? 0, "\(key) went back")
            }
            await end.note()
        }
    }
}
