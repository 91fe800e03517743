import AsyncPrimitives
import TestClocks
import TestSignals
import Testing
import TokenKeys
import WebTokens

@Suite(.timeLimit(.minutes(2))) struct IssuerKeysTests {
    private let a = SigningKey.ed("a")
    private let b = SigningKey.ed("b")
    private let c = SigningKey.ed("c")

    @Test func findsTheKeysOfTheFirstReading() async throws {
        try await withKeys(ScriptedSource(a)) { test in
            let isFound = try test.isFound(a)
            #expect(isFound)
            #expect(test.keys.status.count == 1)
            #expect(test.keys.status.reason == nil)
        }
    }

    @Test func aTokenWithANewKeyWaitsForTheReadingThatBringsIt() async throws {
        try await withKeys(ScriptedSource(a)) { test in
            try test.source.publish(a, b)
            test.clock.advance(by: .seconds(40))
            #expect(try !test.isFound(b))
            try await test.awaiting(b).value
            #expect(try test.isFound(b))
            #expect(test.source.count == 2)
        }
    }

    @Test func aTokenDoesNotWaitForAKeyThatHasComeSinceItWasLookedFor() async throws {
        try await withKeys(ScriptedSource(a)) { test in
            let token = try b.unsignedToken()
            try test.source.publish(a, b)
            test.clock.advance(by: .seconds(40))
            guard case .awaited = try test.keys.key(for: token) else {
                Issue.record("its key is known")
                return
            }
            try await test.awaiting(b).value
            _ = try await test.keys.awaitedKey(for: token)
            #expect(test.source.count == 2)
        }
    }

    @Test func unknownKeysCauseOneReadingInThirtySeconds() async throws {
        try await withKeys(ScriptedSource(a)) { test in
            var waiting: [Task<Void, any Error>] = []
            for number in 0..<50 { waiting.append(try await test.awaiting(.ed("unknown \(number)"))) }
            await test.clock.sleeper(until: .seconds(30))
            #expect(test.source.count == 1)
            test.clock.advance(by: .seconds(30))
            for task in waiting { await #expect(throws: TokenRefusal.self) { try await task.value } }
            #expect(test.source.count == 2)
            // They were asked for before that reading, so they need no other.
            for number in 0..<50 {
                #expect(throws: TokenRefusal.self) { try test.isFound(.ed("unknown \(number)")) }
            }
            // A key that was not asked for before may have been published since.
            let late = try await test.awaiting(b)
            await test.clock.sleeper(until: .seconds(60))
            #expect(test.source.count == 2)
            try test.source.publish(a, b)
            test.clock.advance(by: .seconds(30))
            try await late.value
            #expect(test.source.count == 3)
        }
    }

    /// It may have begun before the key was published, whoever asked for the same key before.
    @Test(arguments: [false, true])
    func aTokenWaitsForTheReadingAfterTheOneUnderWay(isAskedForBefore: Bool) async throws {
        try await withKeys(ScriptedSource(a)) { test in
            test.clock.advance(by: .seconds(30))
            test.source.hold()
            let first = try await test.awaiting(isAskedForBefore ? b : c)
            while test.source.count < 2 { await Task.yield() }
            let second = try await test.awaiting(b)
            test.source.release()
            await #expect(throws: TokenRefusal.self) { try await first.value }
            try test.source.publish(a, b)
            await test.clock.sleeper(until: .seconds(60))
            test.clock.advance(by: .seconds(30))
            try await second.value
        }
    }

    @Test func aWithdrawnKeyIsUnknownAfterTheGreatestAge() async throws {
        try await withKeys(ScriptedSource(a, b, maximumAge: .seconds(1_000_000))) {
            $0.maximumAge = .seconds(600)
        } test: { test in
            guard case .found(let key) = try test.keys.key(for: try a.unsignedToken()) else {
                Issue.record("its key is unknown")
                return
            }
            try test.source.publish(b)
            await test.clock.sleeper(until: .seconds(600))
            test.clock.advance(by: .seconds(599))
            #expect(test.keys.contains(key.fingerprint))
            test.clock.advance(by: .seconds(1))
            #expect(await test.ended.next())
            #expect(!test.keys.contains(key.fingerprint))
            // It was known, so no reading is needed to refuse it.
            #expect(throws: TokenRefusal.self) { try test.isFound(a) }
            #expect(test.source.count == 2)
            // An issuer may go back to old keys.
            try test.source.publish(a)
            test.clock.advance(by: .seconds(30))
            try await test.awaiting(a).value
            #expect(test.keys.contains(key.fingerprint))
        }
    }

    @Test(arguments: [(nil, 900), (0, 60), (59, 60), (300, 300), (899, 899), (901, 900), (1_000_000, 900)])
    func keepsKeysAsLongAsTheirSourceSaysWithinBounds(age: Int?, expected: Int) async throws {
        try await withKeys(ScriptedSource(a, maximumAge: age.map { .seconds($0) })) { test in
            await test.clock.sleeper(until: .seconds(expected))
        }
    }

    @Test func theLastKeysServeWhileTheSourceFails() async throws {
        try await withKeys(ScriptedSource(a, maximumAge: .seconds(60))) {
            $0.staleLimit = .seconds(100)
        } test: { test in
            test.source.fail()
            await test.clock.sleeper(until: .seconds(60))
            test.clock.advance(by: .seconds(60))
            #expect(await !test.ended.next())
            #expect(try test.isFound(a))
            #expect(test.keys.status.failure != nil)
            #expect(test.keys.status.reason == nil)
            // Whether a new key is the issuer's cannot be said.
            #expect(throws: IssuerKeys.Unavailable.self) { try test.isFound(b) }
            // The pauses after failures: 1 s, 2 s, 4 s, ….
            for pause in [1, 2, 4, 8, 16] {
                await test.clock.sleeper(for: .seconds(pause))
                test.clock.advance(by: .seconds(pause))
                #expect(await !test.ended.next())
            }
            #expect(try test.isFound(a))
            test.clock.advance(by: .seconds(10))
            #expect(throws: IssuerKeys.Unavailable.self) { try test.isFound(a) }
            #expect(test.keys.status.reason?.contains("too old") == true)
            try test.source.publish(a)
            test.clock.advance(by: .seconds(22))
            #expect(await test.ended.next())
            #expect(try test.isFound(a))
            #expect(test.keys.status.reason == nil)
        }
    }

    /// The pauses after failures grow up to a minute.
    @Test func aNewKeyDoesNotWaitForALongPauseAfterFailures() async throws {
        try await withKeys(ScriptedSource(a, maximumAge: .seconds(60))) { test in
            test.source.fail()
            await test.clock.sleeper(until: .seconds(60))
            test.clock.advance(by: .seconds(60))
            for pause in [1, 2, 4, 8, 16, 32] {
                #expect(await !test.ended.next())
                await test.clock.sleeper(for: .seconds(pause))
                test.clock.advance(by: .seconds(pause))
            }
            #expect(await !test.ended.next())
            await test.clock.sleeper(for: .seconds(60))
            try test.source.publish(a, b)
            test.clock.advance(by: .seconds(30))
            let waiting = try await test.awaiting(b)
            for _ in 0..<100_000 where test.source.count < 9 { await Task.yield() }
            #expect(test.source.count == 9)
            if test.source.count == 9 { try await waiting.value }
        }
    }

    @Test func nothingIsAcceptedBeforeTheFirstKeys() async throws {
        let source = try ScriptedSource()
        source.fail()
        try await withKeys(source) { test in
            #expect(throws: IssuerKeys.Unavailable.self) { try test.isFound(a) }
            #expect(test.keys.status.reason?.contains("not been read yet") == true)
            try source.publish(a)
            await test.clock.sleeper(for: .seconds(1))
            test.clock.advance(by: .seconds(1))
            #expect(await test.ended.next())
            #expect(try test.isFound(a))
        }
    }

    @Test func aRequestThatWaitsLearnsThatTheSourceFails() async throws {
        try await withKeys(ScriptedSource(a)) { test in
            test.source.fail()
            test.clock.advance(by: .seconds(30))
            let waiting = try await test.awaiting(b)
            await #expect(throws: IssuerKeys.Unavailable.self) { try await waiting.value }
            #expect(try test.isFound(a))
        }
    }

    @Test func fewRequestsWait() async throws {
        try await withKeys(ScriptedSource(a)) {
            $0.maximumWaiting = 3
        } test: { test in
            var waiting: [Task<Void, any Error>] = []
            for number in 0..<3 { waiting.append(try await test.awaiting(.ed("\(number)"))) }
            #expect(throws: IssuerKeys.Unavailable.self) { try test.isFound(b) }
            let token = try b.unsignedToken()
            await #expect(throws: IssuerKeys.Unavailable.self) { try await test.keys.awaitedKey(for: token) }
            #expect(try test.isFound(a))
            // A client that has gone waits no longer.
            waiting[0].cancel()
            await #expect(throws: CancellationError.self) { try await waiting[0].value }
            waiting.append(try await test.awaiting(b))
            test.clock.advance(by: .seconds(30))
            for task in waiting.dropFirst() { await #expect(throws: TokenRefusal.self) { try await task.value } }
        }
    }

    @Test func whoWaitsIsReleasedWhenItStops() async throws {
        let source = try ScriptedSource(a)
        var waiting: Task<Void, any Error>?
        try await withKeys(source) { test in waiting = try await test.awaiting(b) }
        await #expect(throws: IssuerKeys.Unavailable.self) { try await waiting?.value }
    }

    @Test func anEmptySetWithdrawsAllKeys() async throws {
        try await withKeys(ScriptedSource(a, maximumAge: .seconds(60))) { test in
            try test.source.publish()
            await test.clock.sleeper(until: .seconds(60))
            test.clock.advance(by: .seconds(60))
            #expect(await test.ended.next())
            #expect(throws: TokenRefusal.self) { try test.isFound(a) }
        }
    }

    @Test func aFirstReadingThatMustSucceedEndsItWithItsCause() async throws {
        let source = try ScriptedSource(a)
        source.fail()
        await #expect(throws: IssuerKeys.FirstReadingFailed.self) {
            try await IssuerKeys(source).run(requiringFirst: true)
        }
    }
}
