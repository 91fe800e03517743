import Foundation
import Testing

/// Clients that do not read, or send as much as they can: memory stays bounded, and other clients are served.
@Suite(.timeLimit(.minutes(5))) struct BoundsTests {
    /// What the process may use beyond the configured bounds: threads, caches, answers that are being written.
    private static let slack = 64 << 20

    @Test func pullsThatAreNotReadUseBoundedMemoryAndOthersAreServed() async throws {
        let weir = try await TestServer.start(
            settings: [
                "gateway.answer-bytes-in-flight": "16MiB", "gateway.page-bytes": "8MiB", "gateway.outcome-wait": "1s",
                "limits.max-value-bytes": "2MiB",
            ])
        var writer = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let text = JSON(String(repeating: "x", count: 1_000_000))
        for id in 0..<8 { _ = try await writer.sync([TestDevice.change("r\(id)", ["name": text])]) }
        var other = TestDevice(weir, syncID: "def", knowledgeID: "k2")
        _ = try await other.sync([TestDevice.change("r", ["name": "0"])])
        let before = try weir.residentBytes()

        var unread: [UnreadRequest] = []
        var statuses: [Int: Int] = [:]
        for _ in 0..<12 {
            let request = try UnreadRequest(writer.client, "POST", "/v1/pull", ["knowledgeId": "k3"])
            statuses[try await request.status() ?? 0, default: 0] += 1
            unread.append(request)
        }
        #expect(Set(statuses.keys) == [200, 503], "\(statuses)")
        let growth = try weir.residentBytes() - before
        #expect(growth < (16 << 20) + Self.slack, "\(growth >> 20) MiB")
        for version in 2...20 {
            let answer = try await other.sync([TestDevice.change("r", ["name": JSON("\(version)")])])
            #expect(answer["batch"]["results"][0]["version"].int == version)
        }
        unread = []
        // The connections that were closed free their share; the server notices by itself.
        var fresh = TestDevice(weir, syncID: "abc", knowledgeID: "k4")
        var isDrained = false
        while !isDrained {
            do {
                try await fresh.drain(limit: 3)
                isDrained = true
            } catch let failure as DeviceClient.Failure where failure.status == 503 {}
        }
        #expect(fresh.visible == writer.visible)
        #expect(await weir.stop() == 0)
    }

    /// 400 changes that are answered with one large row, and 300 with a row each.
    @Test func conflictsAreAnsweredWithinTheSizeOfAPage() async throws {
        let weir = try await TestServer.start(settings: ["gateway.page-bytes": "256KiB"])
        var writer = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let large = JSON(String(repeating: "x", count: 200_000))
        let text = JSON(String(repeating: "y", count: 5000))
        _ = try await writer.sync(
            [TestDevice.change("large", ["holder": large, "label": "l"], table: "seat")]
                + (0..<300).map { TestDevice.change("r\($0)", ["holder": text, "label": "l"], table: "seat") })
        var stale = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        let changes = ((0..<400).map { _ in "large" } + (0..<300).map { "r\($0)" }).map {
            TestDevice.change($0, ["label": "m"], table: "seat").with("base", 1)
        }
        let upload = ["knowledgeId": "k2", "batch": 1] as JSON
        let answer = try await stale.client.post(
            "/v1/upload", upload.with("changes", JSON(changes.map(\.value))), headers: ["Prefer": "wait=10"])
        #expect(answer.status == 200)
        #expect(answer.body.count < (256 << 10) + 700 * 64, "\(answer.body.count)")
        let batch = try answer.json()["batch"]
        #expect(batch["results"].array.allSatisfy { $0["status"].string == "conflict" })
        #expect(batch["results"].array.count { !$0["row"].isNull } > 1)
        #expect(batch["results"][399]["sameRowAs"].int == 0)
        // Sent again, the batch has the same outcome; the device reads the other rows page by page.
        _ = try await stale.sync(changes)
        #expect(stale.rows == writer.rows)
        #expect(await weir.stop() == 0)
    }

    /// Values that fit one by one, and together are more than a record of the log.
    @Test func aRowThatOutgrowsARecordIsRefusedAndOthersAreServed() async throws {
        let folder = try TestFolder()
        let columns = (0..<8).map { "      c\($0): text" }.joined(separator: "\n")
        try folder.write("tables:\n  wide:\n    columns:\n\(columns)\n", to: "schema.yaml")
        let weir = try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder,
            settings: [
                "partitions": "1", "changelog.max-record-bytes": "1MiB", "limits.max-row-bytes": "256KiB",
                "limits.max-batch-bytes": "512KiB",
            ])
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let value = JSON(String(repeating: "x", count: 200_000))
        for column in 0..<8 {
            let answer = try await device.sync([TestDevice.change("r", ["c\(column)": value], table: "wide")])
            #expect(TestDevice.verdicts(answer) == [column == 0 ? "applied" : "refused row_too_large"])
        }
        var other = TestDevice(weir, syncID: "def", knowledgeID: "k2")
        let answer = try await other.sync([TestDevice.change("r", ["c0": "1"], table: "wide")])
        #expect(TestDevice.verdicts(answer) == ["applied"])
        #expect(await weir.stop() == 0)
    }

    /// A small batch whose rows are together more than ordering reads for one.
    @Test func theRowsOfABatchAreLimitedAndTheChangesBeyondAreSentAgain() async throws {
        let folder = try TestFolder()
        try folder.write("tables:\n  wide:\n    columns:\n      a: text\n      b: text\n", to: "schema.yaml")
        let weir = try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder,
            settings: [
                "partitions": "1", "limits.max-row-bytes": "256KiB", "limits.max-batch-row-bytes": "300KiB",
                "ordering.step-row-bytes": "64KiB",
            ])
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let value = JSON(String(repeating: "x", count: 100_000))
        for number in 0..<6 {
            let answer = try await device.sync([TestDevice.change("r\(number)", ["a": value], table: "wide")])
            #expect(TestDevice.verdicts(answer) == ["applied"])
        }
        var changes = (0..<6).map { TestDevice.change("r\($0)", ["b": "1"], table: "wide") }
        // The fourth row reaches the limit.
        let first = try await device.sync(changes)
        let refused = Array(repeating: "refused batch_rows_too_large", count: 2)
        #expect(TestDevice.verdicts(first) == Array(repeating: "applied", count: 4) + refused)
        #expect(first["batch"]["results"].array.suffix(2).allSatisfy { $0["row"].isNull })
        changes.removeFirst(4)
        #expect(try await TestDevice.verdicts(device.sync(changes)) == ["applied", "applied"])
        #expect(await weir.stop() == 0)
    }

    /// Ten uploads of a hundred bytes that edit a row of a hundred kilobytes, where one such row may be sent at once.
    @Test func smallEditsOfALargeRowCountAsTheRow() async throws {
        let weir = try await TestServer.start(settings: ["gateway.device-bytes-per-second": "10KiB"])
        var writer = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let large = JSON(String(repeating: "x", count: 100_000))
        _ = try await writer.sync([TestDevice.change("r", ["holder": large, "label": "l"], table: "seat")])
        func edit(as device: String) async throws -> DeviceClient.Answer {
            let change = TestDevice.change("r", ["label": "m"], table: "seat").value
            return try await writer.client.post(
                "/v1/upload", ["knowledgeId": JSON(device), "changes": JSON([change])], headers: ["Prefer": "wait=10"])
        }
        var refused: DeviceClient.Answer?
        for _ in 0..<10 where refused == nil {
            let answer = try await edit(as: "k2")
            if answer.status == 429 { refused = answer } else { #expect(answer.status == 200) }
        }
        #expect(refused?.headers["ratelimit"]?.contains("device-bytes") == true)
        // Other devices have bytes of their own, and pulls cost none.
        #expect(try await edit(as: "k3").status == 200)
        var reader = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        try await reader.drain()
        #expect(await weir.stop() == 0)
    }

    @Test func watchStreamsThatAreNotReadUseBoundedMemoryAndOthersAreServed() async throws {
        let weir = try await TestServer.start()
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        _ = try await device.sync([TestDevice.change("r", ["name": "0"])])
        let before = try weir.residentBytes()
        var watchers: [UnreadRequest] = []
        for _ in 0..<100 {
            let watcher = try UnreadRequest(device.client, "GET", "/v1/watch")
            #expect(try await watcher.status() == 200)
            watchers.append(watcher)
        }
        for version in 2...100 {
            let answer = try await device.sync([TestDevice.change("r", ["name": JSON("\(version)")])])
            #expect(answer["batch"]["results"][0]["version"].int == version)
        }
        let growth = try weir.residentBytes() - before
        #expect(growth < Self.slack, "\(growth >> 20) MiB")
        #expect(await weir.stop() == 0)
        watchers = []
    }

    @Test func anOwnerThatSendsTooMuchIsRateLimitedAndOthersAreServed() async throws {
        let weir = try await TestServer.start(settings: [
            "gateway.caller-changes-per-second": "5", "gateway.refusal-delay": "0s",
        ])
        var other = TestDevice(weir, syncID: "def", knowledgeID: "k2")
        let before = try weir.residentBytes()
        let client = DeviceClient(port: weir.port, syncID: "abc")
        let text = JSON(String(repeating: "x", count: 10_000))
        let accepted = try await withThrowingTaskGroup(of: Int.self) { group in
            for sender in 0..<8 {
                group.addTask {
                    var counts: [Int: Int] = [:]
                    // The burst is accepted, then almost nothing.
                    while counts[429, default: 0] < 20 {
                        let change = TestDevice.change("r\(sender)", ["name": text])
                        let answer = try await client.post(
                            "/v1/upload", ["knowledgeId": "k1", "changes": JSON([change.value])])
                        counts[answer.status, default: 0] += 1
                        #expect([202, 429].contains(answer.status))
                        if answer.status == 429 { #expect(answer.headers["retry-after"] != nil) }
                    }
                    return counts[202] ?? 0
                }
            }
            for version in 1...20 {
                let answer = try await other.sync([TestDevice.change("r", ["name": JSON("\(version)")])])
                #expect(answer["batch"]["results"][0]["version"].int == version)
            }
            return try await group.reduce(0, +)
        }
        #expect(accepted >= 50)
        let growth = try weir.residentBytes() - before
        #expect(growth < Self.slack, "\(growth >> 20) MiB")
        #expect(await weir.stop() == 0)
    }
}
