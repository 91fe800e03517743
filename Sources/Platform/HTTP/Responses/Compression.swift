import ThreadExecutor

/// The compression of one response, which continues on other threads.
private final class CompressionInPieces: @unchecked Sendable {
    // Unchecked: used by one task, which awaits each piece before the next.
    private let bytes: [UInt8]
    private var writer: GzipWriter
    private(set) var output: [UInt8] = []

    /// `nil` if there is no memory.
    init?(_ bytes: [UInt8], level: Int) {
        guard let writer = GzipWriter(level: level) else { return nil }
        self.bytes = bytes
        self.writer = writer
        output.reserveCapacity(bytes.count / 4)
    }

    func write(_ range: Range<Int>) {
        bytes.withUnsafeBytes {
            writer.write(
                UnsafeRawBufferPointer(rebasing: $0[range]), isLast: range.upperBound == bytes.count, to: &output)
        }
    }
}

/// Decides whether responses are compressed, and compresses them with gzip.
struct Compression: Sendable {
    let threshold: Int
    let inlineLimit: Int
    let level: Int

    /// Compresses a response that is small, or needs no compression; `false`, with the response unchanged, if it is large.
    func compressAtOnce(_ response: inout HTTPResponse, acceptsGzip: Bool) -> Bool {
        guard let bytes = compressibleBytes(of: response) else { return true }
        if acceptsGzip, bytes.count > inlineLimit { return false }
        Self.addVary(to: &response)
        guard acceptsGzip, var writer = GzipWriter(level: level) else { return true }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count / 2)
        bytes.withUnsafeBytes { writer.write($0, isLast: true, to: &output) }
        Self.replace(bytes, by: output, in: &response)
        return true
    }

    /// A response that is compressed if possible, a large one in pieces, each in a turn of the caller.
    ///
    /// - Parameter caller: of the request, for a response that has no reservation of its own.
    func compressed(
        _ original: HTTPResponse, acceptsGzip: Bool, of caller: BodyBudget.Holder,
        in turns: ThreadTurns<BodyBudget.Holder>
    ) async -> HTTPResponse {
        var response = original
        if compressAtOnce(&response, acceptsGzip: acceptsGzip) { return response }
        guard let bytes = compressibleBytes(of: response) else { return response }
        Self.addVary(to: &response)
        let caller = response.reservation?.holder ?? caller
        guard let work = CompressionInPieces(bytes, level: level) else { return response }
        let piece = ServerCore.pieceOfTurn
        for start in stride(from: 0, to: bytes.count, by: piece) {
            await turns.run(for: caller) { work.write(start..<min(start + piece, bytes.count)) }
        }
        Self.replace(bytes, by: work.output, in: &response)
        return response
    }

    /// The bytes of a response whose compression is worthwhile.
    private func compressibleBytes(of response: HTTPResponse) -> [UInt8]? {
        guard response.isCompressible, case .bytes(let bytes) = response.content, bytes.count >= threshold,
            !response.hasHeader("content-encoding")
        else { return nil }
        return bytes
    }

    /// The response depends on Accept-Encoding (RFC 9110, 12.5.5).
    private static func addVary(to response: inout HTTPResponse) {
        response.headers.append(HTTPField("Vary", "Accept-Encoding"))
    }

    /// Leaves the response unchanged if compression saves nothing.
    private static func replace(_ bytes: [UInt8], by output: [UInt8], in response: inout HTTPResponse) {
        guard output.count < bytes.count else { return }
        response.headers.append(HTTPField("Content-Encoding", "gzip"))
        response.content = .bytes(output)
        response.isShared = false
    }

    /// Whether the client accepts gzip (RFC 9110, 12.5.3): named with a quality above 0, or not named and covered by
    /// `*`.
    static func acceptsGzip(_ headers: HTTPHeaders) -> Bool {
        var named: Bool?
        var others = false
        for header in headers.all("accept-encoding") {
            for element in header.split(separator: UInt8(ascii: ",")) {
                let parts = element.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
                guard let coding = parts.first?.trimmingWhiteSpace() else { continue }
                let isWanted = parts.dropFirst().allSatisfy { !isQualityZero($0.trimmingWhiteSpace()) }
                if coding.equalsIgnoringCase("gzip") || coding.equalsIgnoringCase("x-gzip") {
                    named = isWanted
                } else if coding.equalsIgnoringCase("*") {
                    others = isWanted
                }
            }
        }
        return named ?? others
    }

    /// Whether a parameter is `q=0`, `q=0.`, `q=0.0` and so on.
    private static func isQualityZero(_ parameter: ArraySlice<UInt8>) -> Bool {
        guard let equals = parameter.firstIndex(of: UInt8(ascii: "=")),
            parameter[..<equals].trimmingWhiteSpace().equalsIgnoringCase("q")
        else { return false }
        let quality = parameter[(equals + 1)...].trimmingWhiteSpace()
        return !quality.isEmpty && quality.allSatisfy { $0 == UInt8(ascii: "0") || $0 == UInt8(ascii: ".") }
    }
}
