import Synchronization
import Testing

@testable import Commands

@Suite struct ProgressBarTests {
    /// A bar whose time and output a test holds.
    private final class Bench: Sendable {
        let time = Mutex(Duration.zero)
        let text = Mutex("")

        func bar(total: Int?, isTerminal: Bool) -> ProgressBar {
            ProgressBar(
                "replay", total: total, unit: "records",
                output: .init(isTerminal: isTerminal) { [self] piece in text.withLock { $0 += piece } },
                elapsed: { [self] in time.withLock { $0 } })
        }

        func pass(_ duration: Duration) { time.withLock { $0 += duration } }
        var written: String { text.withLock { $0 } }
    }

    @Test func drawsShareRateAndTimeLeftOnATerminal() {
        let bench = Bench()
        let bar = bench.bar(total: 400, isTerminal: true)
        bench.pass(.seconds(2))
        bar.advance(by: 100)
        #expect(bench.written == "\rreplay [======                  ] 25 %, 100 of 400 records, 50/s, 6 s left")
    }

    @Test func drawsAtMostTenTimesASecond() {
        let bench = Bench()
        let bar = bench.bar(total: 1000, isTerminal: true)
        for _ in 1...1000 {
            bench.pass(.milliseconds(1))
            bar.advance()
        }
        #expect(bench.written.filter { $0 == "\r" }.count == 10)
    }

    @Test func writesWholeLinesElsewhereAndFew() {
        let bench = Bench()
        let bar = bench.bar(total: nil, isTerminal: false)
        for _ in 1...90 {
            bench.pass(.milliseconds(500))
            bar.advance(by: 10)
        }
        bar.finish()
        bar.finish()
        #expect(
            bench.written.split(separator: "\n") == [
                "replay: 200 records, 20/s, 10 s", "replay: 400 records, 20/s, 20 s", "replay: 600 records, 20/s, 30 s",
                "replay: 800 records, 20/s, 40 s", "replay: 900 records, 20/s, 45 s",
            ])
    }

    @Test func aShorterLineLeavesNothingOfALongerOne() {
        let bench = Bench()
        let bar = bench.bar(total: 100_000, isTerminal: true)
        bench.pass(.seconds(1))
        bar.advance(by: 1)
        bar.advance(by: 99_999)
        bar.finish()
        let lines = bench.written.split(separator: "\r")
        #expect(lines[0].hasSuffix(", 27 h 46 min left"))
        #expect(
            lines[1].trimmingSuffix == "replay [========================] 100 %, 100000 of 100000 records, 100k/s, 1 s")
        #expect(lines[1].dropLast().count >= lines[0].count)
    }

    @Test func nothingToDoIsDone() {
        let bench = Bench()
        let bar = bench.bar(total: 0, isTerminal: false)
        bar.finish()
        #expect(bench.written.hasPrefix("replay [========================] 100 %, 0 of 0 records"))
    }
}

extension Substring {
    fileprivate var trimmingSuffix: String {
        var text = self
        while let last = text.last, last == " " || last == "\n" { text.removeLast() }
        return String(text)
    }
}
