import HTTP
import JSON
import Synchronization

/// Parsers that are reused: as many as threads read a body at the same time.
final class BodyParsers: Sendable {
    private final class Box: @unchecked Sendable {
        // Unchecked: whoever took the box out of the pool has it alone.
        var parser = JSONParser()
    }

    /// A parser keeps 20 bytes for each byte of its largest document; one that read a larger body is let go.
    private static let largestKept = 256 << 10

    private let idle = Mutex<[Box]>([])

    /// Parses a body and hands its value to a closure.
    func parse<Result>(
        _ body: HTTPBody, _ read: (borrowing JSONValue) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        let box = idle.withLock { $0.popLast() } ?? Box()
        defer { if body.count <= Self.largestKept { idle.withLock { $0.append(box) } } }
        do {
            return try body.withUnsafeBytes { bytes in
                guard let base = bytes.baseAddress, !bytes.isEmpty else { throw JSONError(.empty, at: 0) }
                // The body has `HTTPBody.padding` readable bytes behind its end.
                let padding = HTTPBody.padding >= JSONParser.padding ? JSONParser.padding : 0
                let padded = UnsafeRawBufferPointer(start: base, count: bytes.count + padding)
                return try box.parser.withDocument(padded.bindMemory(to: UInt8.self).span, padding: padding) {
                    document in
                    try read(document.root)
                }
            }
        } catch let problem as Problem {
            throw problem
        } catch let error as JSONError where error.reason == .outOfMemory {
            throw Problem(.overloaded, "there is no memory to read the body")
        } catch let error as JSONError {
            throw Problem(.malformedJSON, error.message, position: error.position)
        } catch {
            throw Problem(.malformedJSON, "\(error)")
        }
    }
}
