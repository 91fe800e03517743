import Foundation
import Observability
import Synchronization
import Testing

/// How lines get to a descriptor.
@Suite struct BoundedLogSinkTests {
    private func pair(_ make: (UnsafeMutablePointer<Int32>) -> Int32) throws -> (Int32, Int32) {
        var ends: [Int32] = [0, 0]
        try #require(ends.withUnsafeMutableBufferPointer { make($0.baseAddress!) } == 0)
        return (ends[0], ends[1])
    }

    private func read(_ descriptor: Int32) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            count = max(0, Foundation.read(descriptor, buffer.baseAddress, buffer.count))
        }
    }

    /// Fills a pipe with full stops, so that the next `write` blocks.
    private func fill(_ descriptor: Int32) -> Int {
        let flags = fcntl(descriptor, F_GETFL)
        _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
        var byte = UInt8(ascii: ".")
        var count = 0
        while write(descriptor, &byte, 1) == 1 { count += 1 }
        _ = fcntl(descriptor, F_SETFL, flags)
        return count
    }

    @Test func writesEachLineInOneCall() throws {
        // A datagram socket keeps calls apart.
        let type = Int32(SOCK_DGRAM.rawValue)
        let (near, far) = try pair { socketpair(AF_UNIX, type, 0, $0) }
        defer {
            close(near)
            close(far)
        }
        let sink = BoundedLogSink(descriptor: near, format: .text)
        for number in 0..<5 { sink.write(Array("line \(number)\n".utf8)) }
        for number in 0..<5 { #expect(read(far) == Array("line \(number)\n".utf8)) }
    }

    @Test func dropsAndCountsLinesWhileTheReaderIsBlocked() throws {
        let (readEnd, writeEnd) = try pair { pipe($0) }
        defer { close(readEnd) }
        let filling = fill(writeEnd)
        let sink = BoundedLogSink(descriptor: writeEnd, capacity: 10_000) { Array("dropped \($0)\n".utf8) }
        let line = Array(String(repeating: "x", count: 99).utf8) + [UInt8(ascii: "\n")]
        for _ in 0..<5_000 { sink.write(line) }
        #expect(!sink.flush(within: .zero))

        let received = Mutex<[UInt8]>([])
        let reading = DispatchGroup()
        DispatchQueue.global().async(group: reading) {
            while case let bytes = self.read(readEnd), !bytes.isEmpty { received.withLock { $0 += bytes } }
        }
        #expect(sink.flush(within: .seconds(60)))
        // There is room again.
        sink.write(Array("after\n".utf8))
        #expect(sink.flush(within: .seconds(60)))
        close(writeEnd)
        reading.wait()

        let bytes = received.withLock(\.self)
        let notices = String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { $0.hasPrefix("dropped ") }
        #expect(notices.compactMap { Int($0.dropFirst("dropped ".count)) }.reduce(0, +) == 4_900)
        #expect(bytes.count { $0 == UInt8(ascii: "x") } == 100 * 99)
        #expect(bytes.count { $0 == UInt8(ascii: ".") } == filling)
        #expect(bytes.suffix(6).elementsEqual("after\n".utf8))
    }

    @Test func reportsALineThatIsLargerThanTheQueue() throws {
        let (readEnd, writeEnd) = try pair { pipe($0) }
        defer { close(readEnd) }
        let sink = BoundedLogSink(descriptor: writeEnd, capacity: 4, format: .json)
        sink.write(Array("12345".utf8))
        #expect(sink.flush(within: .seconds(60)))
        close(writeEnd)
        let line = String(decoding: read(readEnd), as: UTF8.self)
        #expect(line.contains("\"level\":\"warning\""))
        #expect(line.hasSuffix("\"message\":\"Log lines were dropped\",\"count\":1}\n"))
    }

    @Test func keepsLinesOfManyThreadsWhole() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "weir-\(UUID()).log")
        let descriptor = open(file.path, O_CREAT | O_WRONLY, 0o600)
        try #require(descriptor >= 0)
        defer {
            close(descriptor)
            #expect(throws: Never.self) { try FileManager.default.removeItem(at: file) }
        }
        let sink = BoundedLogSink(descriptor: descriptor, capacity: 64 << 20, format: .text)
        let logger = Logger(label: "t", output: LogOutput(format: .json, to: sink) { 0 })
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<500 {
                logger.info("x", [.partition: .integer(thread), .offset: .integer(number)])
            }
        }
        #expect(sink.flush(within: .seconds(60)))
        let lines = String(decoding: try Data(contentsOf: file), as: UTF8.self).split(separator: "\n")
        let ends = lines.compactMap { $0.split(separator: "\"partition\":").last }
        #expect(lines.count == 4000)
        #expect(Set(ends).count == 4000)
        for thread in 0..<8 {
            // Lines of one thread keep their order.
            #expect(ends.filter { $0.hasPrefix("\(thread),") } == (0..<500).map { "\(thread),\"offset\":\($0)}" })
        }
    }
}
