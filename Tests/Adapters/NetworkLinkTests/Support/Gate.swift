import Glibc

/// Blocks a thread until it is opened, like a thread of a stopped process.
///
/// `@unchecked Sendable`: the descriptors never change, and any thread may read and write a pipe.
final class Gate: @unchecked Sendable {
    private let output: Int32
    private let input: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        let code = pipe(&ends)
        precondition(code == 0, "a pipe can be created")
        (output, input) = (ends[0], ends[1])
    }

    deinit {
        _ = close(output)
        _ = close(input)
    }

    func wait() {
        var byte: UInt8 = 0
        _ = read(output, &byte, 1)
    }

    func open() {
        var byte: UInt8 = 1
        _ = write(input, &byte, 1)
    }
}
