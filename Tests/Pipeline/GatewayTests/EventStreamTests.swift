import HTTP
import SyncModel
import Testing

@testable import Gateway

/// Event streams whose body no connection reads.
@Suite struct EventStreamTests {
    private func event(_ owner: String, _ head: Int64) -> String {
        "event: head\ndata: {\"syncId\":\"\(owner)\",\"head\":\(head)}\n\n"
    }

    @Test func abortsTheStreamOfAReaderThatReadsNothing() async {
        let stream = HTTPBodyStream(capacity: 60)
        let events = EventStream(stream, until: nil)
        events.begin([(.abc, .zero)])
        #expect(events.keepAlive(at: .zero) == .alive)
        // The buffer is full: a task takes the head and waits.
        events.move(.abc, to: TimeStamp(1))
        while events.hasUnsentHeads { await Task.yield() }
        #expect(events.keepAlive(at: .seconds(15)) == .alive)
        #expect(!stream.hasEnded)
        #expect(events.keepAlive(at: .seconds(30)) == .ended)
        #expect(stream.hasEnded)
    }

    @Test func abortsTheStreamOfAReaderThatReadsNoComments() {
        let stream = HTTPBodyStream(capacity: 50)
        let events = EventStream(stream, until: nil)
        events.begin([(.abc, .zero)])
        var keepAlives = 0
        while events.keepAlive(at: .zero) == .alive, keepAlives < 100 { keepAlives += 1 }
        #expect(keepAlives < 5)
        #expect(stream.hasEnded)
    }

    @Test func endsWhenTheCredentialsExpire() {
        let stream = HTTPBodyStream()
        let events = EventStream(stream, until: .seconds(20))
        events.begin([(.abc, .zero)])
        #expect(events.keepAlive(at: .seconds(19)) == .alive)
        #expect(events.keepAlive(at: .seconds(20)) == .ended)
        #expect(stream.hasEnded)
    }

    @Test func endsWhenItsResponseNeverReachedAConnection() {
        var stream: HTTPBodyStream? = HTTPBodyStream()
        let events = EventStream(stream!, until: nil)
        events.begin([(.abc, .zero)])
        #expect(events.keepAlive(at: .zero) == .alive)
        stream = nil
        events.move(.abc, to: TimeStamp(1))
        #expect(events.keepAlive(at: .zero) == .ended)
    }
}
