import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Answers that arrive when the file is no longer as it was when they were asked for.
@Suite(.timeLimit(.minutes(2))) struct LateAnswerTests {
    /// What happens between the server's answer and its arrival.
    enum Meanwhile: CaseIterable, Sendable {
        case theAppWrites
        /// Another process takes the lease, has the same answer, and sends later batches.
        case anotherProcessSyncs
        /// The app suspends Weir, and the answer comes all the same. Until it is resumed, another process syncs.
        case weirIsSuspended
    }

    /// Each one writes what the one before has written, and is sent by another process before the next one.
    private static let writes = [
        "UPDATE item SET title = 'late 0' WHERE id = 'a'; INSERT INTO item VALUES ('late', 'L', NULL)",
        "UPDATE item SET title = 'late 1' WHERE id = 'a'; DELETE FROM item WHERE id = 'late'",
        "UPDATE item SET title = 'late 2' WHERE id = 'a'; INSERT INTO item VALUES ('late', 'again', NULL)",
    ]

    @Test(arguments: Meanwhile.allCases)
    func anAnswerThatArrivesLateLosesNothingAndDoublesNothing(meanwhile: Meanwhile) async throws {
        var number = 0
        var isOver = false
        while !isOver {
            let (server, other) = try await Device.ofShortAnswers()

            let device = try await Device()
            try device.run("INSERT INTO item VALUES ('a', 'A', NULL), ('b', 'B', NULL)")
            let transport = FaultyTransport(server, .lateAnswer, at: number)
            let suspension = Suspension()
            transport.whileLate(Self.happening(meanwhile, device, server, suspension))
            /// Repeats what a suspension has ended, after the app was resumed.
            func untilDone(_ body: () async throws -> Void) async throws {
                do {
                    try await body()
                } catch {
                    try #require(meanwhile == .weirIsSuspended)
                    await suspension.task.withLock { $0 }?.value
                    #expect(error is CancellationError || error as? WeirError == .suspended)
                    try await device.elsewhere(server, writing: Self.writes)()
                    try await device.weir.resume()
                    try await body()
                }
            }
            try await untilDone { try await device.attach(transport) }
            try await untilDone { try await device.weir.sync() }
            try device.run("UPDATE item SET note = 'n' WHERE id IN ('a', 'x'); DELETE FROM item WHERE id = 'y'")
            try other.run("UPDATE item SET title = 'other' WHERE id = 'z'")
            try await other.weir.sync()
            for _ in 0..<2 { try await untilDone { try await device.weir.sync() } }
            try await other.weir.sync()

            let comment = Comment("request \(number) is late")
            isOver = !transport.hasSent(number)
            let rows =
                isOver
                ? ["a A n", "b B -", "w W -", "x X n", "z other -"]
                : ["a late 2 n", "b B -", "late again -", "w W -", "x X n", "z other -"]
            #expect(transport.failures == [], comment)
            #expect(try device.rows() == rows, comment)
            #expect(try other.rows() == rows, comment)
            #expect(try device.states() == other.states(), comment)
            #expect(server.live.filter { $0.contains(" b ") }.allSatisfy { $0.hasSuffix(" 1") }, comment)
            #expect(try await device.weir.pendingRows() == 0, comment)
            #expect(try await device.weir.keptEdits().isEmpty, comment)
            #expect(device.weir.currentStatus.lastError == nil, comment)
            await device.weir.close()
            number += 1
        }
        // Attaching, the schema, pages and batches each had their turn.
        #expect(number > 6)
    }

    /// The call of `suspend` that is under way.
    private final class Suspension: Sendable {
        let task = Mutex<Task<Void, Never>?>(nil)
    }

    private static func happening(
        _ meanwhile: Meanwhile, _ device: Device, _ server: ContractServer, _ suspension: Suspension
    ) -> @Sendable () async throws -> Void {
        switch meanwhile {
        case .theAppWrites:
            let path = device.folder.file()
            return {
                let database = try Database(path: path)
                for sql in writes { try database.execute(sql) }
                database.close()
            }
        case .anotherProcessSyncs: return device.elsewhere(server, writing: writes)
        case .weirIsSuspended:
            let weir = device.weir
            return {
                let (ended, end) = AsyncStream<Void>.makeStream()
                let task = Task {
                    await weir.suspend()
                    end.finish()
                }
                suspension.task.withLock { $0 = task }
                // It cancels the request of a session; attaching is none.
                for await _ in ended {}
            }
        }
    }
}
