import CMicrohttpd
import Glibc

extension HTTPRequest {
    /// A request without a connection, for callers of a handler such as a simulation or a benchmark.
    ///
    /// - Parameter path: an absolute path, percent-encoded, without a query.
    /// - Returns: `nil` for a path that the server would refuse.
    package init?(
        direct method: HTTPMethod, _ path: String, query: [(String, String)] = [], headers: [(String, String)] = [],
        body: [UInt8] = []
    ) {
        var target = path
        let segments = target.withUTF8 { HTTPTarget.path(of: $0).flatMap { HTTPTarget.segments(of: $0) } }
        guard let segments else { return nil }
        self.init(
            method: method, rawPath: path, segments: segments,
            query: query.map { HTTPQueryItem(name: $0.0, value: $0.1) }, headers: HTTPHeaders(headers),
            peer: .unspecified, version: .http11, body: HTTPBody(copying: body))
    }
}

extension HTTPHeaders {
    fileprivate init(_ fields: [(String, String)]) {
        self.init(byteCount: fields.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count })
        for (name, value) in fields {
            var (name, value) = (name, value)
            name.withUTF8 { name in value.withUTF8 { append(name: name, value: $0) } }
        }
    }
}

extension HTTPBody {
    fileprivate convenience init(copying bytes: [UInt8]) {
        guard !bytes.isEmpty else {
            self.init(memory: nil, count: 0, reservation: nil)
            return
        }
        guard let memory = calloc(bytes.count + Self.padding, 1) else { preconditionFailure("out of memory") }
        bytes.withUnsafeBytes { memory.copyMemory(from: $0.baseAddress!, byteCount: bytes.count) }
        self.init(memory: memory, count: bytes.count, reservation: nil)
    }
}

extension HTTPPeer {
    /// `[::]:0`.
    fileprivate static var unspecified: HTTPPeer {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_INET6)
        guard let peer = HTTPPeer(storage) else { preconditionFailure("an IPv6 address is valid") }
        return peer
    }
}
