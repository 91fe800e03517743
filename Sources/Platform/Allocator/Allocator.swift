import CJemalloc

/// jemalloc, which is `malloc` in each program that links this target, for Swift and the C libraries.
///
/// `MALLOC_CONF` sets its options.
package enum Allocator {
    /// jemalloc does not have an option, or not on this system; the code is of errno.
    package struct Failure: Error {
        package let option: String
        package let code: Int32
    }

    /// Bytes that the program has allocated and not freed; `nil` if they cannot be read.
    ///
    /// Resident memory is larger by what was freed within the last ten seconds or so, and by what was never allocated, such as code.
    package static func allocatedBytes() -> Int? {
        // The numbers are those of the last time that this was written.
        var epoch: UInt64 = 1
        guard mallctl("epoch", nil, nil, &epoch, MemoryLayout<UInt64>.size) == 0 else { return nil }
        return value("stats.allocated", 0)
    }

    /// Freed memory is given back to the system on a thread of its own.
    ///
    /// Otherwise what a thread has freed stays while it does nothing.
    package static func purgeInBackground() throws(Failure) {
        var isOn = true
        let code = mallctl("background_thread", nil, nil, &isOn, MemoryLayout<Bool>.size)
        guard code == 0 else { throw Failure(option: "background_thread", code: code) }
    }

    package static var purgesInBackground: Bool { value("background_thread", false) ?? false }

    private static func value<Value: BitwiseCopyable>(_ name: String, _ initial: Value) -> Value? {
        var value = initial
        var size = MemoryLayout<Value>.size
        return mallctl(name, &value, &size, nil, 0) == 0 ? value : nil
    }
}
