import CEventFD
import Glibc

struct Descriptor: ~Copyable {
    let number: Int32

    /// Takes ownership of a descriptor.
    init(_ number: Int32) { self.number = number }

    deinit { close(number) }

    /// An eventfd, which wakes a thread in `epoll_wait`.
    static func event() throws(HTTPServerError) -> Descriptor {
        let number = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard number >= 0 else { throw .cannotStart(reason: HTTPServerError.text(errno)) }
        return Descriptor(number)
    }

    static func epoll() throws(HTTPServerError) -> Descriptor {
        let number = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard number >= 0 else { throw .cannotStart(reason: HTTPServerError.text(errno)) }
        return Descriptor(number)
    }

    func signal() {
        // Fails only when the counter is full, and then the thread is awake already.
        eventfd_write(number, 1)
    }

    func clear() {
        var count: eventfd_t = 0
        // Fails only when the counter is zero.
        eventfd_read(number, &count)
    }
}

enum MonotonicTime {
    /// Nanoseconds of CLOCK_MONOTONIC.
    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

extension Duration {
    /// 0 for a negative duration; at most about 290 years.
    var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 9_000_000_000 else { return 9_000_000_000_000_000_000 }
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
}
