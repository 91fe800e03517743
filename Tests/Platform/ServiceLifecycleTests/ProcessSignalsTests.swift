import Foundation
import Testing

/// What signals do to a process; it is one of its own, beside the tests.
@Suite(.timeLimit(.minutes(5))) struct ProcessSignalsTests {
    /// The process and what it says.
    private final class Probe {
        private let process = Process()
        private let pipe = Pipe()
        private(set) var text = ""

        init(_ arguments: [String]) throws {
            // Built beside the tests.
            let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            let products = folder
            process.executableURL = products.appending(path: "SignalProbe")
            process.arguments = arguments
            process.standardError = pipe
            try process.run()
        }

        /// Reads until it says so, or ends.
        func read(until part: String) {
            while !text.contains(part) {
                let data = pipe.fileHandleForReading.availableData
                if data.isEmpty { return }
                text += String(decoding: data, as: UTF8.self)
            }
        }

        /// Reads until it says so once more than before.
        func readNext(_ part: String) {
            let count = text.ranges(of: part).count
            while text.ranges(of: part).count == count {
                let data = pipe.fileHandleForReading.availableData
                if data.isEmpty { return }
                text += String(decoding: data, as: UTF8.self)
            }
        }

        func send(_ signal: Int32) {
            kill(process.processIdentifier, signal)
        }

        func end() -> Int32 {
            read(until: "\u{0}")
            process.waitUntilExit()
            return process.terminationStatus
        }
    }

    @Test(arguments: [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")])
    func stopsGracefullyOnTheFirstSignal(_ signal: Int32, _ name: String) throws {
        let probe = try Probe([])
        probe.read(until: "Every service is ready")
        probe.send(signal)
        #expect(probe.end() == 0)
        #expect(probe.text.contains("\"message\":\"Shutting down\",\"reason\":\"\(name)\""))
        let parts = ["Shutting down", "second was asked to stop", "first was asked to stop", "ended"]
        let places = parts.compactMap { probe.text.range(of: $0)?.lowerBound }
        #expect(places.count == parts.count)
        #expect(places == places.sorted())
    }

    @Test func continuesOnHangup() throws {
        let probe = try Probe([])
        probe.read(until: "Every service is ready")
        for _ in 1...3 {
            probe.send(SIGHUP)
            probe.readNext("hung up")
        }
        probe.send(SIGTERM)
        #expect(probe.end() == 0)
        #expect(probe.text.contains("first was asked to stop"))
    }

    @Test func endsAtOnceOnTheSecondSignal() throws {
        let probe = try Probe(["stubborn"])
        probe.read(until: "Every service is ready")
        probe.send(SIGTERM)
        probe.read(until: "second was asked to stop")
        probe.send(SIGINT)
        #expect(probe.end() == 128 + SIGINT)
        #expect(probe.text.contains("a second signal, SIGINT: exiting at once"))
        #expect(!probe.text.contains("first was asked to stop"))
    }
}
