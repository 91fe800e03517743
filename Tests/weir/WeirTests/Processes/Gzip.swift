import CZlib
import Foundation

/// Compressed bodies, as a client makes them.
enum Gzip {
    /// 64 MiB of spaces in 64 KiB.
    static let bomb = compress([UInt8](repeating: UInt8(ascii: " "), count: 64 << 20))

    /// Compresses.
    static func compress(_ bytes: [UInt8]) -> Data {
        var stream = z_stream()
        CZlib_start_gzip(&stream, 9)
        defer { deflateEnd(&stream) }
        var input = bytes
        var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))))
        // Both arrays stay where they are while zlib works on them.
        input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                deflate(&stream, Z_FINISH)
            }
        }
        return Data(output[..<Int(stream.total_out)])
    }
}
