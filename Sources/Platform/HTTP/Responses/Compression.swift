/// Decides whether responses are compressed, and compresses them with gzip.
struct Compression: Sendable {
    let threshold: Int
    let inlineLimit: Int
    let level: Int

    /// A task yields after each piece of this size: about 1 ms of work.
    private static let piece = 128 << 10

    enum Plan {
        case uncompressed
        case inline([UInt8])
        case inTask([UInt8])
    }

    /// Adds `Vary` if the response depends on Accept-Encoding (RFC 9110, 12.5.5).
    func plan(_ response: inout HTTPResponse, acceptsGzip: Bool) -> Plan {
        guard response.isCompressible, case .bytes(let bytes) = response.content, bytes.count >= threshold,
            !response.hasHeader("content-encoding")
        else { return .uncompressed }
        response.headers.append(HTTPField("Vary", "Accept-Encoding"))
        guard acceptsGzip else { return .uncompressed }
        return bytes.count <= inlineLimit ? .inline(bytes) : .inTask(bytes)
    }

    /// Compresses at once; leaves the response unchanged if that saves nothing.
    func compress(_ bytes: [UInt8], in response: inout HTTPResponse) {
        guard var writer = GzipWriter(level: level) else { return }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count / 2)
        bytes.withUnsafeBytes { writer.write($0, isLast: true, to: &output) }
        Self.replace(bytes, by: output, in: &response)
    }

    /// Compresses in pieces and yields between them.
    func compressInPieces(_ bytes: [UInt8], in response: inout HTTPResponse) async {
        guard var writer = GzipWriter(level: level) else { return }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count / 4)
        var start = 0
        repeat {
            let end = min(start + Self.piece, bytes.count)
            bytes.withUnsafeBytes {
                writer.write(UnsafeRawBufferPointer(rebasing: $0[start..<end]), isLast: end == bytes.count, to: &output)
            }
            start = end
            if start < bytes.count { await Task.yield() }
        } while start < bytes.count
        Self.replace(bytes, by: output, in: &response)
    }

    private static func replace(_ bytes: [UInt8], by output: [UInt8], in response: inout HTTPResponse) {
        guard output.count < bytes.count else { return }
        response.headers.append(HTTPField("Content-Encoding", "gzip"))
        response.content = .bytes(output)
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
