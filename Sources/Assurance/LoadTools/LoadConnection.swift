import Glibc

/// A keep-alive connection to the server that parses as little of the answers as possible, to leave the processors to
/// the server.
///
/// Used by one thread at a time.
package final class LoadConnection {
    /// A server that sends nothing for so long counts as hung.
    private let timeLimitSeconds: Int

    package let descriptor: Int32
    /// As large as the largest answer so far: thousands of connections must not need much.
    private var buffer: [UInt8] = []
    private var filled = 0
    /// The seconds of the newest answer's Retry-After; `nil` where it has none.
    package private(set) var retryAfter: Int?

    package init(port: UInt16, timeLimitSeconds: Int = 120) throws(LoadFailure) {
        self.timeLimitSeconds = timeLimitSeconds
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw .system("socket", errno) }
        var isOn: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        var limit = timeval(tv_sec: timeLimitSeconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            let code = errno
            close(descriptor)
            throw .system("connecting to port \(port)", code)
        }
        // Last, since an object that has all of its values is deinitialised when this throws: the number would be closed twice, and be
        // that of another thread's connection by then.
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    package func send(_ request: [UInt8]) throws(LoadFailure) {
        var sent = 0
        while sent < request.count {
            let count = request.withUnsafeBytes { bytes in
                Glibc.send(descriptor, bytes.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .system("sending to the server", errno) }
            sent += count
        }
    }

    /// Reads an answer; the body is valid during the call alone.
    package func receive<Value>(_ body: (Int, ArraySlice<UInt8>) throws -> Value) throws -> Value {
        filled = 0
        var head: Head?
        while true {
            if head == nil { head = Head(buffer[..<filled]) }
            if let head, head.isChunked {
                retryAfter = head.retryAfter
                return try body(head.status, try receiveChunks(from: head.size)[...])
            }
            if let head, filled >= head.size + head.bodySize {
                retryAfter = head.retryAfter
                return try body(head.status, buffer[head.size..<(head.size + head.bodySize)])
            }
            let needed = head.map { $0.size + $0.bodySize } ?? filled + 4096
            if buffer.count < needed { buffer += [UInt8](repeating: 0, count: needed - buffer.count) }
            filled += try receiveSome(at: filled)
        }
    }

    /// Reads a body of unknown length, whose first chunk is at an offset of the buffer.
    private func receiveChunks(from start: Int) throws(LoadFailure) -> [UInt8] {
        var body: [UInt8] = []
        var index = start
        while true {
            guard let line = buffer[..<filled].firstRange(of: "\r\n", from: index) else {
                try receiveMore()
                continue
            }
            guard let size = Int(String(decoding: buffer[index..<line.lowerBound], as: UTF8.self), radix: 16) else {
                throw LoadFailure("the server's answer has a chunk without a size")
            }
            // Each chunk, also the last, which is empty, ends with a line break.
            let end = line.upperBound + size + 2
            while filled < end { try receiveMore() }
            if size == 0 { return body }
            body += buffer[line.upperBound..<(end - 2)]
            index = end
        }
    }

    private func receiveMore() throws(LoadFailure) {
        if buffer.count < filled + 65_536 { buffer += [UInt8](repeating: 0, count: max(buffer.count, 65_536)) }
        filled += try receiveSome(at: filled)
    }

    package func exchange<Value>(_ request: [UInt8], _ body: (Int, ArraySlice<UInt8>) throws -> Value) throws -> Value {
        try send(request)
        return try receive(body)
    }

    package func exchange(_ request: [UInt8], expecting expected: Int) throws {
        try exchange(request) { status, body in try Self.check(status, body, expected) }
    }

    package static func check(_ status: Int, _ body: ArraySlice<UInt8>, _ expected: Int) throws(LoadFailure) {
        if status == expected { return }
        throw LoadFailure(
            "the server answered \(status), not \(expected): \(String(decoding: body.prefix(500), as: UTF8.self))")
    }

    /// Reads what has arrived, at least one byte, without parsing it.
    package func receiveBytes(atMost limit: Int) throws(LoadFailure) -> ArraySlice<UInt8> {
        if buffer.count < limit { buffer += [UInt8](repeating: 0, count: limit - buffer.count) }
        return buffer[..<(try receiveSome(at: 0))]
    }

    private func receiveSome(at offset: Int) throws(LoadFailure) -> Int {
        while true {
            let count = buffer.withUnsafeMutableBytes { bytes in
                recv(descriptor, bytes.baseAddress! + offset, bytes.count - offset, 0)
            }
            if count > 0 { return count }
            guard count < 0 else { throw LoadFailure("the server closed a connection in the middle of an answer") }
            guard errno != EINTR else { continue }
            throw errno == EAGAIN
                ? LoadFailure("the server has not answered for \(timeLimitSeconds) s")
                : .system("receiving from the server", errno)
        }
    }

    private struct Head {
        let status: Int
        let bodySize: Int
        let size: Int
        let retryAfter: Int?
        let isChunked: Bool

        /// `nil` where the head is not complete.
        init?(_ bytes: ArraySlice<UInt8>) {
            guard let end = bytes.firstRange(of: "\r\n\r\n", from: 0) else { return nil }
            size = end.upperBound
            // "HTTP/1.1 200 …"
            status = bytes.number(from: 9)
            func field(_ name: StaticString) -> Int? {
                guard let name = bytes.firstRange(of: name, from: 0), name.upperBound < end.upperBound else {
                    return nil
                }
                return bytes.number(from: name.upperBound)
            }
            bodySize = field("\r\nContent-Length: ") ?? 0
            let chunked = bytes.firstRange(of: "\r\nTransfer-Encoding: chunked", from: 0)
            isChunked = chunked.map { $0.upperBound <= end.upperBound } ?? false
            retryAfter = status < 400 ? nil : field("\r\nRetry-After: ")
        }
    }
}

extension RandomAccessCollection where Element == UInt8, Index == Int {
    /// The first occurrence of a short text from an index on.
    package func firstRange(of text: StaticString, from start: Int) -> Range<Int>? {
        let last = endIndex - text.utf8CodeUnitCount
        return start > last ? nil : range(of: text, at: start...last)
    }

    /// The last occurrence of a short text.
    package func lastRange(of text: StaticString) -> Range<Int>? {
        range(of: text, at: stride(from: endIndex - text.utf8CodeUnitCount, through: startIndex, by: -1))
    }

    private func range(of text: StaticString, at indices: some Sequence<Int>) -> Range<Int>? {
        text.withUTF8Buffer { text in
            for index in indices where self[index] == text[0] {
                var length = 1
                while length < text.count, self[index + length] == text[length] { length += 1 }
                if length == text.count { return index..<(index + length) }
            }
            return nil
        }
    }

    /// The decimal number at an index; 0 where there is none.
    package func number(from start: Int) -> Int {
        var number = 0
        var index = start
        while index < endIndex, case UInt8(ascii: "0")...UInt8(ascii: "9") = self[index] {
            number = number * 10 + Int(self[index] - UInt8(ascii: "0"))
            index += 1
        }
        return number
    }
}
