import Testing
import ThreadExecutor
import ZeroMQ

/// Sockets on a thread of their own.
@Suite(.timeLimit(.minutes(5))) struct SocketTests {
    @Test func messagesPassBothWaysAndWakeEndsTheWait() async throws {
        let thread = try DedicatedThread(name: "sockets")
        let answer = try await thread.run { () throws -> [[UInt8]]? in
            let context = try ZeroMQContext()
            defer { context.close() }
            let router = try context.socket(.router)
            defer { router.close() }
            let dealer = try context.socket(.dealer)
            defer { dealer.close() }
            router.set(.routerMandatory, 1)
            try router.bind("tcp://127.0.0.1:0")
            try dealer.connect(try router.lastEndpoint())
            let wakeup = try ZeroMQWakeup()
            wakeup.wake()
            wakeup.wake()
            #expect(try wakeup.wait(for: [router]) == [false])
            #expect(try dealer.send([[1, 2], [], [3]]) == .queued)
            #expect(try wakeup.wait(for: [router]) == [true])
            let message = try #require(try router.receive())
            #expect(Array(message.dropFirst()) == [[1, 2], [], [3]])
            #expect(try router.receive() == nil)
            #expect(try router.send([[9, 9], [1]]) == .noPeer)
            #expect(try router.send([message[0], [4]]) == .queued)
            #expect(try wakeup.wait(for: [dealer]) == [true])
            return try dealer.receive()
        }
        #expect(answer == [[4]])
        await thread.close()
    }

    @Test func addressInUseIsAnErrorWithText() async throws {
        let thread = try DedicatedThread(name: "sockets")
        try await thread.run { () throws in
            let context = try ZeroMQContext()
            defer { context.close() }
            let first = try context.socket(.router)
            defer { first.close() }
            let second = try context.socket(.router)
            defer { second.close() }
            try first.bind("tcp://127.0.0.1:0")
            let endpoint = try first.lastEndpoint()
            let error = try #require(throws: ZeroMQError.self) { try second.bind(endpoint) }
            #expect(error.description == "listen at \(endpoint): Address already in use")
        }
        await thread.close()
    }

    @Test func keysAreDerivedFromSecrets() throws {
        let one = try CurveKeys(secret: Array(repeating: 1, count: 32))
        #expect(one.publicKey.count == 32)
        #expect(try CurveKeys(secret: Array(repeating: 1, count: 32)).publicKey == one.publicKey)
        #expect(try CurveKeys(secret: Array(repeating: 2, count: 32)).publicKey != one.publicKey)
    }
}
