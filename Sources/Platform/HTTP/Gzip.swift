import CZlib

/// Why bytes could not be read as gzip.
enum GunzipError: Error {
    case malformed
    case outOfMemory
}

/// Reads gzip in pieces; several members one after the other count as one (RFC 1952, 2.2).
struct Gunzip: ~Copyable {
    /// What zlib takes for its window and tables, at most; counted against the bytes in flight.
    static let memory = 48 << 10

    /// On the heap, since zlib's own state points back to it.
    private let stream: UnsafeMutablePointer<z_stream>
    private var isBetweenMembers = true
    private var hasRead = false

    /// Makes ready to read.
    init() throws(GunzipError) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard CZlib_start_gunzip(stream) == Z_OK else {
            stream.deallocate()
            throw .outOfMemory
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Whether what has come so far is complete.
    var isComplete: Bool { isBetweenMembers && hasRead }

    /// Decompresses from `input` into `output` until one of them is used up, and says how much of both was.
    mutating func read(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(GunzipError) -> (taken: Int, made: Int) {
        // zlib takes sizes as 32 bits and does not write to its input.
        let input = UnsafeMutableRawBufferPointer(mutating: input).prefix(1 << 30)
        let output = output.prefix(1 << 30)
        stream.pointee.next_in = UnsafeMutableRawBufferPointer(rebasing: input).bindMemory(to: UInt8.self).baseAddress
        stream.pointee.avail_in = UInt32(input.count)
        stream.pointee.next_out = UnsafeMutableRawBufferPointer(rebasing: output).bindMemory(to: UInt8.self).baseAddress
        stream.pointee.avail_out = UInt32(output.count)
        while stream.pointee.avail_in > 0 || !isBetweenMembers {
            if isBetweenMembers {
                if hasRead, inflateReset(stream) != Z_OK { throw .malformed }
                isBetweenMembers = false
                hasRead = true
            }
            switch inflate(stream, Z_NO_FLUSH) {
            case Z_OK: break
            case Z_STREAM_END: isBetweenMembers = true
            case Z_BUF_ERROR: return amounts(input.count, output.count)
            case Z_MEM_ERROR: throw .outOfMemory
            default: throw .malformed
            }
            if stream.pointee.avail_out == 0 { break }
        }
        return amounts(input.count, output.count)
    }

    private func amounts(_ input: Int, _ output: Int) -> (taken: Int, made: Int) {
        (input - Int(stream.pointee.avail_in), output - Int(stream.pointee.avail_out))
    }
}

/// Writes gzip in pieces.
struct GzipWriter: ~Copyable {
    private let stream: UnsafeMutablePointer<z_stream>

    /// Makes ready to write; `nil` when there is no memory for it.
    init?(level: Int) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard CZlib_start_gzip(stream, Int32(level)) == Z_OK else {
            stream.deallocate()
            return nil
        }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Compresses a piece and appends what comes of it; the last piece ends the stream.
    mutating func write(_ input: UnsafeRawBufferPointer, isLast: Bool, to output: inout [UInt8]) {
        // zlib takes sizes as 32 bits; callers give pieces.
        precondition(input.count <= 1 << 30, "a piece to compress has at most 1 GiB")
        let input = UnsafeMutableRawBufferPointer(mutating: input).bindMemory(to: UInt8.self)
        stream.pointee.next_in = input.baseAddress
        stream.pointee.avail_in = UInt32(input.count)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16 << 10) { buffer in
            repeat {
                stream.pointee.next_out = buffer.baseAddress
                stream.pointee.avail_out = UInt32(buffer.count)
                // Cannot fail on a stream made above: the worst is that there is nothing to do.
                deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
                output.append(contentsOf: buffer[..<(buffer.count - Int(stream.pointee.avail_out))])
            } while stream.pointee.avail_out == 0
        }
    }
}
