import CZlib

enum GunzipError: Error {
    case malformed
    case outOfMemory
}

/// Decompresses gzip in pieces; consecutive members form one stream (RFC 1952, 2.2).
struct Gunzip: ~Copyable {
    /// The most memory that zlib allocates; counted against the bytes in flight.
    static let memory = 48 << 10

    /// On the heap, because zlib's state has a pointer to it.
    private let stream: UnsafeMutablePointer<z_stream>
    private var isBetweenMembers = true
    private var hasRead = false

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

    var isComplete: Bool { isBetweenMembers && hasRead }

    /// Decompresses from `input` into `output` until one of them is used up.
    ///
    /// - Returns: the bytes read and written.
    mutating func read(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(GunzipError) -> (read: Int, written: Int) {
        // zlib has 32-bit sizes, and does not write to its input.
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

    private func amounts(_ input: Int, _ output: Int) -> (read: Int, written: Int) {
        (input - Int(stream.pointee.avail_in), output - Int(stream.pointee.avail_out))
    }
}

struct GzipWriter: ~Copyable {
    private let stream: UnsafeMutablePointer<z_stream>

    /// `nil` if there is no memory.
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

    /// Compresses a piece and appends the result; the last piece ends the stream.
    mutating func write(_ input: UnsafeRawBufferPointer, isLast: Bool, to output: inout [UInt8]) {
        // zlib has 32-bit sizes.
        precondition(input.count <= 1 << 30, "a piece to compress has at most 1 GiB")
        let input = UnsafeMutableRawBufferPointer(mutating: input).bindMemory(to: UInt8.self)
        stream.pointee.next_in = input.baseAddress
        stream.pointee.avail_in = UInt32(input.count)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16 << 10) { buffer in
            repeat {
                stream.pointee.next_out = buffer.baseAddress
                stream.pointee.avail_out = UInt32(buffer.count)
                // Cannot fail on an initialized stream; without input or output space it does nothing.
                deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
                output.append(contentsOf: buffer[..<(buffer.count - Int(stream.pointee.avail_out))])
            } while stream.pointee.avail_out == 0
        }
    }
}
