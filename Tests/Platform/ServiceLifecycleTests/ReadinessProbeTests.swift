import ServiceLifecycle
import Synchronization
import Testing

/// Questions that are put whenever somebody asks whether the process is ready.
@Suite(.timeLimit(.minutes(5))) struct ReadinessProbeTests {
    private let readiness = Readiness()

    private func reasons() async -> [String: String] {
        let entries = await readiness.probedReport().conditions
        return Dictionary(uniqueKeysWithValues: entries.map { ($0.name, $0.unreadyReason ?? "ready") })
    }

    @Test func probesRunWithEachReport() async {
        let reason = Mutex<String?>("the broker is away")
        readiness.addCondition("listening").setReady()
        readiness.addProbe("kafka") { reason.withLock(\.self) }
        readiness.addProbe("postgres") { nil }
        #expect(await reasons() == ["listening": "ready", "kafka": "the broker is away", "postgres": "ready"])
        #expect(await readiness.probedReport().isReady == false)
        reason.withLock { $0 = nil }
        #expect(await readiness.probedReport().isReady)
    }

    @Test func aProbeThatHangsMakesUnreadyAndDoesNotRunTwice() async {
        let (questions, note) = AsyncStream.makeStream(of: Void.self)
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let count = Mutex(0)
        readiness.addProbe("kafka", limit: .milliseconds(20)) {
            count.withLock { $0 += 1 }
            note.yield()
            for await _ in answers { break }
            return nil
        }
        #expect(await reasons()["kafka"]?.hasPrefix("no response for ") == true)
        #expect(await reasons()["kafka"]?.hasPrefix("no response for ") == true)
        for await _ in questions { break }
        #expect(count.withLock(\.self) == 1)
        // Answered: whoever asks next has the question put again.
        answer.yield()
        answer.finish()
        while await readiness.probedReport().isReady == false {}
        #expect(count.withLock(\.self) >= 1)
    }
}
