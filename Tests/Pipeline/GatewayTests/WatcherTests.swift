import HTTP
import SyncModel
import Testing

@testable import Gateway

/// A watcher whose stream no connection takes anything from.
@Suite struct WatcherTests {
    private func event(_ owner: String, _ head: Int64) -> String {
        "event: head\ndata: {\"syncId\":\"\(owner)\",\"head\":\(head)}\n\n"
    }

    @Test func abortsAStreamWhoseReaderTakesNothing() async {
        let stream = HTTPBodyStream(capacity: 60)
        let watcher = EventStream(stream, until: nil)
        watcher.begin([(.abc, .zero)])
        #expect(watcher.tick(at: .zero) == .alive)
        // The buffer has no capacity left: a task takes the head and waits.
        watcher.move(.abc, to: TimeStamp(1))
        while watcher.hasUnsentHeads { await Task.yield() }
        #expect(watcher.tick(at: .seconds(15)) == .alive)
        #expect(!stream.hasEnded)
        #expect(watcher.tick(at: .seconds(30)) == .over)
        #expect(stream.hasEnded)
    }

    @Test func letsAReaderGoThatTakesNoComments() {
        let stream = HTTPBodyStream(capacity: 50)
        let watcher = EventStream(stream, until: nil)
        watcher.begin([(.abc, .zero)])
        var ticks = 0
        while watcher.tick(at: .zero) == .alive, ticks < 100 { ticks += 1 }
        #expect(ticks < 5)
        #expect(stream.hasEnded)
    }

    @Test func endsWithItsTime() {
        let stream = HTTPBodyStream()
        let watcher = EventStream(stream, until: .seconds(20))
        watcher.begin([(.abc, .zero)])
        #expect(watcher.tick(at: .seconds(19)) == .alive)
        #expect(watcher.tick(at: .seconds(20)) == .over)
        #expect(stream.hasEnded)
    }

    @Test func isOverWhereItsAnswerNeverReachedAConnection() {
        var stream: HTTPBodyStream? = HTTPBodyStream()
        let watcher = EventStream(stream!, until: nil)
        watcher.begin([(.abc, .zero)])
        #expect(watcher.tick(at: .zero) == .alive)
        stream = nil
        watcher.move(.abc, to: TimeStamp(1))
        #expect(watcher.tick(at: .zero) == .over)
    }
}
