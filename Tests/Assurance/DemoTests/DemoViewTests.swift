import Testing

@testable import Demo

/// What a person reads while a demonstration runs.
@Suite struct DemoViewTests {
    private static let size = DemoView.Size(columns: 100, rows: 24)

    private static func line(
        _ name: String, isOnline: Bool = true, pending: Int = 0, rows: Int = 12, error: String? = nil
    ) -> DemoView.Line {
        DemoView.Line(name: name, isOnline: isOnline, phase: "idle", pending: pending, rows: rows, error: error)
    }

    private static func snapshot(_ lines: [DemoView.Line], left: Int = 30) -> DemoView.Snapshot {
        DemoView.Snapshot(
            lines: lines, left: left, edits: 310, head: 4711, latency: "p50 12 ms, p99 80 ms of 200 edits")
    }

    private static let snapshot = snapshot([
        line("device-9", pending: 3, rows: 8), line("device-10", isOnline: false, pending: 12345, rows: 140),
        line("device-11", error: "the server cannot be reached"),
    ])

    @Test func theScreenHasALineForEachDeviceInColumns() {
        var shown = ShownScreen(columns: 100, rows: 24)
        shown.write(DemoView().redraw(Self.snapshot, on: Self.size))
        #expect(
            shown.text == [
                "30 s left, 310 edits, head of the stream 4711",
                "from write to seen on another device: p50 12 ms, p99 80 ms of 200 edits",
                "device-9   online   pending     3  rows     8  idle",
                "device-10  offline  pending 12345  rows   140  idle",
                "device-11  online   pending     0  rows    12  the server cannot be reached",
            ])
        #expect(shown.unknown == [])
    }

    @Test func whatIsWrittenToAFileIsOneLine() {
        #expect(
            DemoView.summary(Self.snapshot)
                == "30 s left: 2 of 3 devices online, 12348 rows pending, 8-140 rows, 310 edits, head 4711, "
                + "latency p50 12 ms, p99 80 ms of 200 edits")
    }

    @Test func aRedrawReplacesTheLinesBeforeAndNoOthers() {
        let view = DemoView()
        var shown = ShownScreen(columns: 100, rows: 24)
        shown.write("seed 7\n")
        shown.write(view.redraw(Self.snapshot, on: Self.size))
        let next = Self.snapshot([Self.line("device-9", isOnline: false), Self.line("device-10")], left: 29)
        shown.write(view.redraw(next, on: Self.size))
        #expect(shown.redraws == 1)
        #expect(
            shown.text == [
                "seed 7", "29 s left, 310 edits, head of the stream 4711",
                "from write to seen on another device: p50 12 ms, p99 80 ms of 200 edits",
                "device-9   offline  pending     0  rows    12  idle",
                "device-10  online   pending     0  rows    12  idle",
            ])
        // What follows is below.
        shown.write("All devices go online and sync.\n")
        #expect(shown.text.count == 6 && shown.text.last == "All devices go online and sync.")
    }

    @Test(arguments: [(columns: 80, rows: 24), (50, 24), (30, 24), (80, 10), (80, 6)])
    func aRedrawReplacesTheLinesBeforeOnASmallTerminal(columns: Int, rows: Int) {
        let view = DemoView()
        let error = "GET /v1/watch cannot be answered:\n" + String(repeating: "a reason ", count: 20)
        var shown = ShownScreen(columns: columns, rows: rows)
        shown.write("seed 7\n")
        for left in [30, 29, 28] {
            let lines = (1...12).map { Self.line("device-\($0)", error: $0 % 2 == 0 ? error : nil) }
            shown.write(view.redraw(Self.snapshot(lines, left: left), on: .init(columns: columns, rows: rows)))
        }
        #expect(shown.redraws == 2 && shown.text.first == "seed 7")
        #expect(shown.text.count { $0.contains(" s left, ") } == 1)
        let devices = shown.text.filter { $0.hasPrefix("device-") }
        #expect(devices.count == min(12, rows < 15 ? rows - 4 : 12))
        #expect(shown.text.last == (devices.count < 12 ? "and \(12 - devices.count) more devices" : devices.last))
        #expect(shown.text.allSatisfy { $0.count <= columns })
    }
}
