import Glibc

/// Receives the body of one request in pieces, within its size limit and the server's byte budget.
///
/// A few kilobytes of gzip may become megabytes. While it arrives it is decompressed up to ``ServerCore/largeBody``; what follows is
/// kept, and decompressed as a ``CompressedBody``.
///
/// Used on the thread of its connection only, and then by the task that decompresses the rest.
final class BodyReceiver {
    enum Fault: Error {
        case tooLarge
        case overloaded
        case malformed
    }

    /// The largest first allocation: enough for most requests, but not more for clients that declare much and send
    /// nothing.
    private static let firstAllocation = 64 << 10

    private var memory: UnsafeMutableRawPointer?
    private var count = 0
    /// Without the padding.
    private var capacity = 0
    private var compressedCount = 0
    private let limit: Int
    private let declared: Int?
    private let reservation: BodyReservation
    private var gunzip: Gunzip?
    /// Compressed bytes that have arrived and are not decompressed yet.
    private var kept: [UInt8] = []
    /// How many of these are decompressed.
    private var keptRead = 0
    /// Bytes that are reserved for those that are kept.
    private var keptCapacity = 0
    /// Whether there may be more to decompress than the connection's thread has.
    private(set) var hasRest = false

    /// - Parameter declared: the Content-Length.
    init(limit: Int, declared: Int?, isGzip: Bool, reservation: BodyReservation) throws(Fault) {
        self.limit = limit
        self.declared = declared
        self.reservation = reservation
        guard isGzip else { return }
        guard reservation.grow(by: Gunzip.memory) else { throw .overloaded }
        do {
            gunzip = try Gunzip()
        } catch {
            throw .overloaded
        }
    }

    deinit { free(memory) }

    /// The most bytes that a body of `limit` bytes can have before decompression: gzip can add a little.
    static func encodedLimit(_ limit: Int, isGzip: Bool) -> Int {
        isGzip ? limit + limit / 1000 + 64 : limit
    }

    /// Appends the next piece.
    func append(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
        guard gunzip == nil else { return try appendCompressed(bytes) }
        try reserve(count + bytes.count, upTo: limit)
        memory?.advanced(by: count).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
        count += bytes.count
    }

    private func appendCompressed(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
        compressedCount += bytes.count
        guard compressedCount <= Self.encodedLimit(limit, isGzip: true) else { throw .tooLarge }
        var rest = bytes
        if !hasRest {
            let read: Int
            (read, hasRest) = try decompress(bytes, upTo: ServerCore.largeBody)
            rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(read))
        }
        if !rest.isEmpty { try keep(rest) }
    }

    /// Decompresses until the input is used up, or the body has `end` bytes, of which it has fewer.
    ///
    /// - Returns: how many bytes were read, and whether there may be more to decompress.
    private func decompress(_ bytes: UnsafeRawBufferPointer, upTo end: Int) throws(Fault) -> (read: Int, isMore: Bool) {
        var rest = bytes
        while true {
            // One byte above the limit is allocated, so that a body that is too large exceeds it.
            if count == capacity { try reserve(count + 1, upTo: limit + 1) }
            let free = UnsafeMutableRawBufferPointer(
                start: memory?.advanced(by: count), count: min(capacity, end) - count)
            let read: Int
            let written: Int
            do {
                (read, written) = try gunzip!.read(rest, into: free)
            } catch {
                throw error == .outOfMemory ? .overloaded : .malformed
            }
            count += written
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(read))
            // When the buffer is full, zlib may have more output.
            let isMore = (!rest.isEmpty || written == free.count) && read + written > 0
            if !isMore || count >= end { return (bytes.count - rest.count, isMore) }
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
        let needed = kept.count + bytes.count
        if needed > keptCapacity {
            var wanted = min(max(needed, 2 * keptCapacity), declared ?? Self.encodedLimit(limit, isGzip: true))
            if !reservation.grow(by: wanted - keptCapacity) {
                wanted = needed
                guard reservation.grow(by: wanted - keptCapacity) else { throw .overloaded }
            }
            kept.reserveCapacity(wanted)
            keptCapacity = wanted
        }
        kept.append(contentsOf: bytes)
    }

    /// Decompresses up to so many bytes of what was kept, and of so many: compressed bytes may be none decompressed.
    ///
    /// - Returns: whether there may be more.
    func decompressKept(_ size: Int) throws(Fault) -> Bool {
        let end = count + size
        let next = keptRead..<min(keptRead + size, kept.count)
        let (read, isMore) = try kept.withUnsafeBufferPointer { kept throws(Fault) in
            try decompress(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: kept[next])), upTo: end)
        }
        keptRead += read
        hasRest = isMore || next.upperBound < kept.count
        if !hasRest {
            kept = []
            reservation.shrink(by: keptCapacity)
        }
        return hasRest
    }

    /// Grows the memory to hold at least `needed` bytes and the padding.
    private func reserve(_ needed: Int, upTo limit: Int) throws(Fault) {
        guard needed > capacity else { return }
        guard needed <= limit else { throw .tooLarge }
        var wanted = max(needed, 2 * capacity)
        if let declared, gunzip == nil {
            wanted = max(needed, min(declared, max(wanted, Self.firstAllocation)))
        } else if capacity == 0 {
            wanted = max(wanted, min(Self.firstAllocation, 4 * max(declared ?? 0, 1024)))
        }
        wanted = min(wanted, limit)
        let padding = capacity == 0 ? HTTPBody.padding : 0
        if !reservation.grow(by: wanted - capacity + padding) {
            // Retries with the minimum.
            wanted = needed
            guard reservation.grow(by: wanted - capacity + padding) else { throw .overloaded }
        }
        guard let grown = realloc(memory, wanted + HTTPBody.padding) else { throw .overloaded }
        memory = grown
        capacity = wanted
    }

    func finish() throws(Fault) -> HTTPBody {
        if let isComplete = gunzip?.isComplete, !isComplete { throw .malformed }
        guard count > 0, let memory else { return .empty }
        let wasted = capacity - count
        var end = memory
        // Returns unused memory if it is worth a copy.
        if wasted > count / 4, let shrunk = realloc(memory, count + HTTPBody.padding) {
            end = shrunk
            reservation.shrink(by: wasted)
        }
        if gunzip != nil {
            gunzip = nil
            reservation.shrink(by: Gunzip.memory)
        }
        end.advanced(by: count).initializeMemory(as: UInt8.self, repeating: 0, count: HTTPBody.padding)
        let body = HTTPBody(memory: end, count: count, reservation: reservation)
        self.memory = nil
        return body
    }
}
