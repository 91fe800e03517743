import Foundation
import Synchronization
import Testing
import WeirClient

@Suite struct SessionTests {
    // MARK: Attaching

    @Test func attachingSaysWhatItHasFound() async throws {
        let server = ContractServer(Device.tables)
        let first = try await Device()
        #expect(try await first.attach(server) == .startedEmpty)
        #expect(try await first.attach(server) == .resumed)
        try await first.restart()
        let asked = server.requests.count
        #expect(try await first.attach(server) == .resumed)
        #expect(server.requests.count == asked)

        let used = try await Device(Device.schema + ";INSERT INTO item VALUES ('old', 'before Weir', NULL)")
        try used.run("INSERT INTO item VALUES ('new', 'before the login', NULL)")
        #expect(try await used.attach(server) == .seededFromLocal)
        #expect(try await used.weir.pendingRows() == 2)
        #expect(server.live.isEmpty)
        try await used.weir.sync()
        #expect(server.live.count == 2)

        let second = try await Device()
        try second.run("INSERT INTO item VALUES ('local', 'kept', NULL)")
        #expect(try await second.attach(server) == .usedRemote)
        try await second.weir.sync()
        #expect(try second.rows() == ["local kept -", "new before the login -", "old before Weir -"])
        #expect(server.live.count == 3)
    }

    @Test func aFileOfAnotherAccountIsRefused() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await device.attach(server)
        await #expect(throws: WeirError.otherAccount(attached: "abc")) {
            try await device.weir.attach("def", server: Device.url, options: Device.options(server))
        }
        await #expect(throws: WeirError.notAttached) { try await device.otherWeir().sync() }
    }

    @Test func attachingWithoutTheServerCanBeRepeatedAndChangesNothing() async throws {
        let server = ContractServer(Device.tables)
        let transport = FaultyTransport(server, .lostRequest, at: 0)
        let device = try await Device()
        let error = await #expect(throws: SyncError.self) { try await device.attach(transport) }
        #expect(error?.kind == .unreachable)
        #expect(try await device.attach(transport) == .startedEmpty)
        #expect(Set(server.requests.map { $0.url.path }) == ["/v1/pull"])
    }

    // MARK: Tokens

    /// A token of somebody else must not send this account's changes to that one.
    @Test func nothingIsSentWithATokenOfAnotherAccount() async throws {
        let server = ContractServer(Device.tables)
        let other = ContractServer(Device.tables)
        other.state.withLock { $0.syncID = "somebody else" }
        let token = Mutex("mine")
        let transport = ScriptedTransport { request, _ in
            switch request.headers["authorization"] {
            case "Bearer mine": try await server.send(request)
            case "Bearer theirs": try await other.send(request)
            default: .problem(401, "unauthenticated")
            }
        }
        let device = try await Device()
        try await device.weir.attach("me", server: Device.url, options: Device.options(transport)) {
            token.withLock { $0 }
        }
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.sync()
        #expect(server.live.count == 1)
        try device.run("INSERT INTO item VALUES ('b', 'B', NULL)")
        token.withLock { $0 = "theirs" }
        try await device.restart()
        try await device.weir.attach("me", server: Device.url, options: Device.options(transport)) {
            token.withLock { $0 }
        }
        let error = await #expect(throws: SyncError.self) { try await device.weir.sync() }
        #expect(error?.kind == .otherAccount)
        #expect(device.weir.currentStatus.needsAttention == [.otherAccount])
        #expect(other.live.isEmpty)
        #expect(!other.requests.contains { $0.url.path == "/v1/sync" })
        token.withLock { $0 = "expired" }
        // The next token is asked for when the server rejects this one.
        try await device.restart()
        try await device.weir.attach("me", server: Device.url, options: Device.options(transport)) {
            token.withLock { token in
                defer { token = "mine" }
                return token
            }
        }
        try await device.weir.sync()
        #expect(server.live.count == 2)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
    }

    @Test func aTokenThatRunsOutDuringASessionIsRenewedAndTheSessionContinues() async throws {
        let server = ContractServer(Device.tables)
        for id in 0..<50 { server.write("item", "\(id)", ["title": "t"]) }
        server.state.withLock { $0.pageRows = 5 }
        let count = Counter()
        // Each token is good for three requests.
        let uses = Mutex<[String: Int]>([:])
        let transport = ScriptedTransport { request, _ in
            let token = request.headers["authorization"] ?? ""
            let used = uses.withLock { uses in
                uses[token, default: 0] += 1
                return uses[token] ?? 0
            }
            return used > 3 ? .problem(401, "unauthenticated") : try await server.send(request)
        }
        let device = try await Device()
        try await device.weir.attach("me", server: Device.url, options: Device.options(transport)) {
            "t\(count.next())"
        }
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.sync()
        #expect(try device.rows().count == 51)
        #expect(server.live.count == 51)
        #expect(server.state.withLock { $0.applied } == 1)
    }

    // MARK: Failures

    @Test(arguments: Fault.allCases) func aFaultAtAnyRequestLosesNothingAndDoublesNothing(fault: Fault) async throws {
        var number = 0
        var isOver = false
        while !isOver {
            let (server, other) = try await Device.ofShortAnswers()

            let transport = FaultyTransport(server, fault, at: number)
            let device = try await Device()
            transport.whileLate(device.elsewhere(server))
            try device.run("INSERT INTO item VALUES ('a', 'A', NULL), ('b', 'B', NULL)")
            var failures = 0
            func untilDone(_ body: () async throws -> Void) async throws {
                for _ in 0..<3 {
                    do {
                        return try await body()
                    } catch is SyncError {
                        failures += 1
                        // Nothing is dropped, whatever the answer was.
                        #expect(try device.rows().count >= 2)
                    }
                }
                Issue.record("request \(number) fails again and again")
            }
            try await untilDone { try await device.attach(transport) }
            try await untilDone { try await device.weir.sync() }
            try device.run("UPDATE item SET note = 'n' WHERE id IN ('a', 'x'); DELETE FROM item WHERE id = 'y'")
            try other.run("UPDATE item SET title = 'other' WHERE id = 'z'")
            try await other.weir.sync()
            try await untilDone { try await device.weir.sync() }
            if failures > 0 { try await device.restart() }
            try await untilDone { try await device.attach(transport) }
            try await untilDone { try await device.weir.sync() }
            try await other.weir.sync()

            let comment = Comment("\(fault) at request \(number)")
            #expect(transport.failures == [], comment)
            let rows = ["a A n", "b B -", "w W -", "x X n", "z other -"]
            #expect(try device.rows() == rows, comment)
            #expect(try other.rows() == rows, comment)
            #expect(try device.states() == other.states(), comment)
            #expect(server.live.filter { $0.contains(" a ") }.allSatisfy { $0.hasSuffix(" 2") }, comment)
            #expect(server.live.filter { $0.contains(" b ") }.allSatisfy { $0.hasSuffix(" 1") }, comment)
            #expect(try await device.weir.pendingRows() == 0, comment)
            #expect(device.weir.currentStatus.lastError == nil, comment)
            isOver = !transport.hasSent(number)
            number += 1
        }
        // Attaching, the schema, pages and batches each had their turn.
        #expect(number > 6)
    }

    @Test func afterARefusalTheStatusSaysWhoHasToDoSomething() async throws {
        let server = ContractServer(Device.tables)
        let refusal = Mutex<TransportResponse?>(nil)
        let transport = ScriptedTransport { request, _ in
            if let refusal = refusal.withLock({ $0 }) { return refusal }
            return try await server.send(request)
        }
        let device = try await Device()
        try await device.attach(transport)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        for (response, attention) in [
            (TransportResponse.problem(403, "device_revoked"), SyncStatus.Attention.forbidden(code: "device_revoked")),
            (.problem(401, "unauthenticated"), .logIn),
            (.problem(422, "invalid_request"), .rejected(code: "invalid_request")),
        ] {
            refusal.withLock { $0 = response }
            await #expect(throws: SyncError.self) { try await device.weir.sync() }
            #expect(device.weir.currentStatus.needsAttention == [attention])
            #expect(device.weir.currentStatus.phase == .stopped)
        }
        // A failure of the network changes nothing about it.
        refusal.withLock { $0 = .problem(503, "overloaded") }
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        #expect(!device.weir.currentStatus.needsAttention.isEmpty)
        #expect(device.weir.currentStatus.lastError?.code == "overloaded")
        refusal.withLock { $0 = nil }
        try await device.weir.sync()
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
        #expect(server.live.count == 1)
    }

    @Test func aServerThatAlwaysHasMoreIsAFault() async throws {
        let server = ContractServer(Device.tables)
        let transport = ScriptedTransport { request, number in
            var response = try await server.send(request)
            if number > 0, request.url.path == "/v1/pull" {
                let text = String(decoding: response.body, as: UTF8.self)
                response.body = Array(text.replacing(#""hasMore":false"#, with: #""hasMore":true"#).utf8)
            }
            return response
        }
        let device = try await Device()
        try await device.attach(transport)
        let error = await #expect(throws: SyncError.self) { try await device.weir.sync() }
        #expect(error?.kind == .unreadable)
    }

    // MARK: Requests

    @Test func aBatchIsSentWithTheBytesThatWereFrozenUntilItHasItsOutcome() async throws {
        let server = ContractServer(Device.tables)
        let transport = ScriptedTransport { request, number in
            let response = try await server.send(request)
            if request.url.path == "/v1/sync", number < 6 { throw ScriptedTransport.Lost() }
            return response
        }
        let device = try await Device()
        try await device.attach(transport)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        for title in ["B", "C", "D"] {
            await #expect(throws: SyncError.self) { try await device.weir.sync() }
            // The row changes, and the batch does not.
            try device.run("UPDATE item SET title = '\(title)'")
        }
        try await device.weir.sync()
        let batches = transport.requests.filter { $0.url.path == "/v1/sync" }.map {
            String(decoding: $0.body, as: UTF8.self)
        }
        let first = batches.filter { $0.contains(#""batch":1"#) }
        #expect(first.count >= 4)
        #expect(Set(first.map { $0.prefix { $0 != "]" } }).count == 1)
        #expect(server.live == [#"item a {"note":null,"title":"D"} 2"#])
    }

    @Test func aLongVectorIsAskedForInTheShortForm() async throws {
        let server = ContractServer(Device.tables)
        for device in 0..<60 { server.write("item", "\(device)", ["title": "t"], device: "d\(device)") }
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        try await device.weir.sync()
        try await device.weir.sync()
        let vectors = server.requests.filter { $0.url.path != "/v1/schema" }.map {
            String(decoding: $0.body, as: UTF8.self)
        }
        #expect(vectors.contains { $0.contains("compact") })
        #expect(vectors.last?.contains(#""knowledgeId":"*""#) == true)
        #expect(vectors.last?.contains("compact") == false)
    }

    @Test func whatACutPageSaysIsSentBack() async throws {
        let server = ContractServer(Device.tables)
        for id in 0..<10 { server.write("item", "\(id)", ["title": "t"]) }
        server.state.withLock { $0.pageRows = 4 }
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        let sent = server.requests.filter { $0.url.path == "/v1/pull" }.dropFirst()
            .map { String(decoding: $0.body, as: UTF8.self).contains(#""cutFrom":[{"#) }
        #expect(sent == [false, true, true])
        #expect(try device.rows().count == 10)
    }
}
