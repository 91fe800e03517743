import DeviceRegistry
import FanOutLink
import Foundation
import Gateway
import SQLiteDeviceRegistry
import SyncModel
import Synchronization
import TestClocks
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct DeviceTests {
    /// A gateway with a registry in a file and decisions in memory.
    private func withDevices(
        _ prepare: (inout TestGateway.Setup) -> Void = { _ in },
        _ test: (TestGateway, KnownDevices) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "weir-gateway-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = try await SQLiteDeviceRegistry.open(
            path: folder.appending(path: "devices.db").path, maximumPerCaller: 100)
        let known = KnownDevices(file)
        let outcome: Result<Void, any Error>
        do {
            let prepareAll: (inout TestGateway.Setup) -> Void = { setup in
                setup.devices = known.gateway
                prepare(&setup)
            }
            try await withGateway(prepareAll) { gateway in
                known.onChange { gateway.handler.devicesChanged() }
                try await test(gateway, known)
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await file.close()
        try FileManager.default.removeItem(at: folder)
        try outcome.get()
    }

    private func list(_ gateway: TestGateway, _ query: String = "", as caller: String = "abc") async throws -> JSONTree
    {
        let answer = try await gateway.exchange("GET", "/v1/devices" + query, as: caller)
        #expect(answer.status == 200)
        #expect(answer["cache-control"] == "no-store")
        return try JSONTree(answer.body)
    }

    @Test func aDeviceIsKnownFromItsFirstPull() async throws {
        try await withDevices { gateway, known in
            gateway.link.set(.rows([], [], head: 120), of: .abc)
            known.time.withLock { $0 = 1_700_000_000_000_001 }
            _ = try await gateway.exchange(
                "POST", "/v1/pull",
                #"{"knowledgeId":"k1","device":{"name":"Phone","platform":"iOS 26","appVersion":"3.0"},"#
                    + #""knowledge":[\#(entry("k1", 100)),\#(entry("k2", 90))]}"#)
            let device = try #require(try await list(gateway)["devices"]?.elements.first)
            #expect(device["knowledgeId"]?.text == "k1")
            #expect(device["name"]?.text == "Phone")
            #expect(device["platform"]?.text == "iOS 26")
            #expect(device["appVersion"]?.text == "3.0")
            #expect(device["firstSeen"]?.text == "2023-11-14T22:13:20.000001Z")
            #expect(device["lastUpload"] == nil)
            #expect(device["revoked"]?.bool == false)
            let held = try #require(device["knowledge"]?.elements.first)
            #expect(held["syncId"]?.text == "abc")
            #expect(held["knowledgeId"]?.text == "*")
            #expect(held["lastTimeStamp"]?.number == 100)
        }
    }

    @Test func lagIsTheDistanceToTheOwnersHead() async throws {
        try await withDevices { gateway, _ in
            gateway.link.set(.rows([], [], head: 120), of: .abc)
            _ = try await gateway.exchange(
                "POST", "/v1/pull", #"{"knowledgeId":"k1","knowledge":[\#(entry("k2", 90))]}"#)
            _ = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k2"}"#)
            let page = try await list(gateway)
            #expect(page["head"]?.number == 120)
            #expect(page["devices"]?.elements.map { $0["lag"]?.number } == [30, nil])
        }
    }

    @Test func uploadsShowWhenADeviceLastUploaded() async throws {
        try await withDevices { gateway, known in
            known.time.withLock { $0 = 1_000_000 }
            _ = try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","batch":1,"changes":[]}"#)
            known.time.withLock { $0 = 2_000_000 }
            _ = try await gateway.exchange("GET", "/v1/batches/1?knowledgeId=k1")
            let device = try #require(try await list(gateway)["devices"]?.elements.first)
            #expect(device["lastUpload"]?.text == "1970-01-01T00:00:01.000000Z")
            #expect(device["lastSeen"]?.text == "1970-01-01T00:00:02.000000Z")
        }
    }

    @Test func devicesOfOthersAreNotListedNorChanged() async throws {
        try await withDevices { gateway, known in
            _ = try await gateway.exchange("POST", "/v1/pull", as: "xyz", #"{"knowledgeId":"k1"}"#)
            #expect(try await list(gateway)["devices"]?.elements.isEmpty == true)
            let renamed = try await gateway.exchange("PATCH", "/v1/devices/k1", #"{"name":"mine"}"#)
            #expect(renamed.status == 404)
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k1").status == 204)
            let pull = try await gateway.exchange("POST", "/v1/pull", as: "xyz", #"{"knowledgeId":"k1"}"#)
            #expect(pull.status == 200)
        }
    }

    @Test func aNameOfTheOwnerCountsBeforeTheReportedOne() async throws {
        try await withDevices { gateway, _ in
            _ = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k 1","device":{"name":"a"}}"#)
            let answer = try await gateway.exchange("PATCH", "/v1/devices/k%201", #"{"name":"Ann’s"}"#)
            #expect(answer.status == 200)
            #expect(try JSONTree(answer.body)["name"]?.text == "Ann’s")
            let back = try await gateway.exchange("PATCH", "/v1/devices/k%201", #"{"name":null}"#)
            #expect(try JSONTree(back.body)["name"]?.text == "a")
        }
    }

    @Test(arguments: [
        #"{}"#, #"{"name":1}"#, #"{"name":""}"#, #"{"revoked":true}"#, #"[]"#, #"{"name":"a","name":"b"}"#,
        #"{"name":"\u0000"}"#, "{\"name\":\"\(String(repeating: "x", count: 256))\"}",
    ])
    func malformedChangesOfADeviceAreRefused(body: String) async throws {
        try await withDevices { gateway, _ in
            let answer = try await gateway.exchange("PATCH", "/v1/devices/k1", body)
            #expect(answer.status == 422)
            #expect(answer.text.contains(#""code":"invalid_request""#))
        }
    }

    @Test(arguments: [
        #"{"knowledgeId":"k1","device":[]}"#, #"{"knowledgeId":"k1","device":{"name":7}}"#,
        #"{"knowledgeId":"k1","device":{"platform":"\u0000"}}"#,
    ])
    func malformedDescriptionsAreRefused(body: String) async throws {
        try await withDevices { gateway, _ in
            let answer = try await gateway.exchange("POST", "/v1/pull", body)
            #expect(answer.status == 422)
        }
    }

    @Test(arguments: [
        "/v1/devices?limit=0", "/v1/devices?limit=x", "/v1/devices?after=*", "/v1/devices?limit=1&limit=2",
    ])
    func malformedQueriesAreRefused(target: String) async throws {
        try await withDevices { gateway, _ in
            let answer = try await gateway.exchange("GET", target)
            #expect(answer.status == 422)
        }
    }

    @Test func devicesAreListedInPages() async throws {
        try await withDevices { gateway, _ in
            for number in 1...5 {
                _ = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k\#(number)"}"#)
            }
            // Never seen, and listed since it is revoked.
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k25").status == 204)
            var ids: [String] = []
            var query = "?limit=2"
            while true {
                let page = try await list(gateway, query)
                let devices = page["devices"]?.elements ?? []
                #expect(devices.count <= 2)
                ids += devices.compactMap { $0["knowledgeId"]?.text }
                guard page["hasMore"]?.bool == true, let last = ids.last else { break }
                query = "?limit=2&after=\(last)"
            }
            #expect(ids == ["k1", "k2", "k25", "k3", "k4", "k5"])
        }
    }

    @Test func aRevokedDeviceIsRefusedEverywhereUntilItIsAllowedAgain() async throws {
        try await withDevices { gateway, known in
            let requests = [
                ("POST", "/v1/sync", #"{"knowledgeId":"k1","batch":1,"changes":[]}"#),
                ("POST", "/v1/upload", #"{"knowledgeId":"k1","batch":1,"changes":[]}"#),
                ("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#), ("GET", "/v1/batches/1?knowledgeId=k1", nil),
            ]
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k1").status == 204)
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k1").status == 204)
            for (method, target, body) in requests {
                let answer = try await gateway.exchange(method, target, body)
                #expect(answer.status == 403)
                #expect(answer.text.contains(#""code":"device_revoked""#))
            }
            #expect(gateway.log.records.isEmpty)
            let other = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k2"}"#)
            #expect(other.status == 200)
            known.decide(
                DeviceDecision(Device(caller: .abc, knowledgeID: .k1), isRevoked: false))
            #expect(try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#).status == 200)
        }
    }

    @Test func aRevocationEndsTheDevicesLongPollAndNoOther() async throws {
        try await withDevices { gateway, _ in
            var clients: [HTTPClient] = []
            for device in ["k1", "k2"] {
                let client = try HTTPClient(port: gateway.port)
                try await client.send(
                    "POST", "/v1/pull", headers: TestGateway.headers(),
                    body: Array(#"{"knowledgeId":"\#(device)","wait":30}"#.utf8))
                _ = await gateway.link.subscriptions.next()
                clients.append(client)
            }
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k1").status == 204)
            #expect(try await clients[0].answer().status == 403)
            gateway.link.move(.abc, to: 9, rows: .rows([#"{"id":"x"}"#], [(.k2, 9)], head: 9))
            #expect(try await clients[1].answer().text.contains(#""changes":[{"id":"x"}]"#))
        }
    }

    @Test func anUploadThatWaitedIsRefusedIfItsDeviceWasRevokedMeanwhile() async throws {
        let backlog = UploadBacklog(partitions: 4, maximumLag: .seconds(60))
        try await withDevices { setup in
            setup.backlog = backlog
        } _: { gateway, _ in
            let body = #"{"knowledgeId":"k1","changes":[{}]}"#
            while gateway.log.records.count < 4 {
                #expect(try await gateway.exchange("POST", "/v1/upload", body).status == 202)
            }
            let client = try HTTPClient(port: gateway.port)
            try await client.send("POST", "/v1/upload", headers: TestGateway.headers(), body: Array(body.utf8))
            await gateway.clock.sleeper(until: .seconds(5))
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k1").status == 204)
            let partition = Partitioning(count: 4).partition(of: .abc)
            for offset in 0..<4 { backlog.passed(UploadReference(partition: partition, offset: Int64(offset))) }
            #expect(try await client.answer().status == 403)
            #expect(gateway.log.records.count == 4)
        }
    }

    @Test func requestsAreAnsweredWhileTheRegistryIsAway() async throws {
        try await withDevices { gateway, known in
            known.isAway.withLock { $0 = true }
            #expect(try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#).status == 200)
            #expect(try await gateway.exchange("GET", "/v1/devices").status == 503)
            // A revocation does not need it.
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k9").status == 204)
            #expect(try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k9"}"#).status == 403)
            known.isAway.withLock { $0 = false }
            // What was seen meanwhile is not lost.
            let devices = try await list(gateway)["devices"]?.elements ?? []
            #expect(devices.map { $0["knowledgeId"]?.text } == ["k1", "k9"])
            #expect(devices.first?["firstSeen"] != nil)
        }
    }

    @Test func whatWasSeenIsWrittenOnceInAnInterval() async throws {
        try await withDevices { gateway, known in
            await gateway.clock.sleeper(until: .seconds(60))
            for _ in 1...3 { _ = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#) }
            _ = try await gateway.exchange("POST", "/v1/pull", as: "xyz", #"{"knowledgeId":"k1"}"#)
            #expect(known.writes.withLock { $0 } == [])
            gateway.clock.advance(by: .seconds(60))
            await gateway.clock.sleeper(until: .seconds(120))
            #expect(known.writes.withLock { $0 } == [2])
        }
    }

    @Test func aStopWritesWhatWasSeen() async throws {
        let known = Mutex<KnownDevices?>(nil)
        try await withDevices { gateway, devices in
            known.withLock { $0 = devices }
            _ = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#)
        }
        let devices = try #require(known.withLock { $0 })
        #expect(devices.writes.withLock { $0 } == [1])
    }

    /// Else a device that repeats its batches for ever would take the tokens of all others.
    @Test func aRevokedDeviceUsesNoChangesOfItsCaller() async throws {
        try await withDevices { setup in
            setup.configuration.callerRates.changes = 1
        } _: { (gateway: TestGateway, _: KnownDevices) async throws -> Void in
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k1").status == 204)
            let changes = Array(repeating: "{}", count: 10).joined(separator: ",")
            func upload(_ device: String) async throws -> Int {
                try await gateway.exchange(
                    "POST", "/v1/upload", #"{"knowledgeId":"\#(device)","changes":[\#(changes)]}"#
                ).status
            }
            #expect(try await upload("k1") == 403)
            #expect(try await upload("k2") == 202)
            #expect(try await upload("k2") == 429)
        }
    }

    @Test func onlySoManyDevicesMayBeRevoked() async throws {
        try await withDevices { gateway, known in
            for number in 0..<1000 {
                let id = KnowledgeID(unchecked: "k\(number)")
                known.decide(DeviceDecision(Device(caller: .abc, knowledgeID: id), isRevoked: true))
            }
            for (id, status) in [("k1", 204), ("more", 403)] {
                let answer = try await gateway.exchange("DELETE", "/v1/devices/\(id)")
                #expect(answer.status == status)
            }
            #expect(try await gateway.exchange("DELETE", "/v1/devices/k1", as: "xyz").status == 204)
        }
    }
}

/// A registry that a test can take away, and the decisions about devices.
final class KnownDevices: DeviceRegistry {
    let isShared: Bool
    let time = Mutex<Int64>(1)
    let isAway = Mutex(false)
    /// How many devices each call that succeeded wrote.
    let writes = Mutex<[Int]>([])
    private let registry: any DeviceRegistry
    private let revoked = Mutex(RevokedDevices())
    private let handler = Mutex<(@Sendable () -> Void)?>(nil)

    init(_ registry: any DeviceRegistry, isShared: Bool = true) {
        self.registry = registry
        self.isShared = isShared
    }

    var gateway: GatewayDevices {
        GatewayDevices(
            registry: self, isRevoked: { device in self.revoked.withLock { $0.contains(device) } },
            revoked: { caller in self.revoked.withLock { $0.devices[caller] ?? [] } },
            revoke: { self.decide(DeviceDecision($0, isRevoked: true)) }, now: { self.time.withLock { $0 } })
    }

    /// Decides as another process does.
    func decide(_ decision: DeviceDecision) {
        revoked.withLock { $0.append(decision) }
        handler.withLock { $0 }?()
    }

    func onChange(_ handler: @escaping @Sendable () -> Void) { self.handler.withLock { $0 = handler } }

    private func check() throws(DeviceRegistryError) {
        if isAway.withLock({ $0 }) { throw DeviceRegistryError("away") }
    }

    func positions(of device: Device) async throws(DeviceRegistryError) -> [String: Int64] {
        try check()
        return try await registry.positions(of: device)
    }

    func raise(_ positions: [DevicePosition]) async throws(DeviceRegistryError) {
        try check()
        try await registry.raise(positions)
    }

    func record(_ sightings: [DeviceSighting]) async throws(DeviceRegistryError) {
        try check()
        try await registry.record(sightings)
        if !sightings.isEmpty { writes.withLock { $0.append(sightings.count) } }
    }

    func devices(
        of caller: SyncID, after last: KnowledgeID?, limit: Int
    ) async throws(DeviceRegistryError) -> [RegisteredDevice] {
        try check()
        return try await registry.devices(of: caller, after: last, limit: limit)
    }

    func device(_ device: Device) async throws(DeviceRegistryError) -> RegisteredDevice? {
        try check()
        return try await registry.device(device)
    }

    func rename(_ device: Device, to name: String?) async throws(DeviceRegistryError) -> Bool {
        try check()
        return try await registry.rename(device, to: name)
    }

    func close() async {}
}
