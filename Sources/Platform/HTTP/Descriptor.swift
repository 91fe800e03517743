import CEventFD
import Glibc

/// A file descriptor that closes itself.
struct Descriptor: ~Copyable {
    let number: Int32

    /// Takes over a descriptor.
    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// Makes the descriptor that wakes a thread out of `epoll_wait`.
    static func event() throws(HTTPServerError) -> Descriptor {
        let number = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard number >= 0 else { throw .cannotStart(reason: HTTPServerError.text(errno)) }
        return Descriptor(number)
    }

    /// Makes an epoll set.
    static func epoll() throws(HTTPServerError) -> Descriptor {
        let number = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard number >= 0 else { throw .cannotStart(reason: HTTPServerError.text(errno)) }
        return Descriptor(number)
    }

    /// Wakes whoever waits for this event descriptor.
    func signal() {
        // Fails only when the count is full, and then the waiter is awake anyhow.
        eventfd_write(number, 1)
    }

    /// Takes back the signals given.
    func clear() {
        var count: eventfd_t = 0
        // Fails only when there are none.
        eventfd_read(number, &count)
    }
}

/// Time as the system counts it, which no clock change moves.
enum MonotonicTime {
    /// Nanoseconds since some start.
    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

extension Duration {
    /// Whole nanoseconds, 0 for a negative duration, at most some 290 years.
    var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 9_000_000_000 else { return 9_000_000_000_000_000_000 }
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
}
