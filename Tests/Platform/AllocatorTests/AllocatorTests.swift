import Allocator
import Testing

@Suite struct AllocatorTests {
    /// jemalloc is the malloc of a program that links it, for what Swift allocates, too.
    @Test func countsWhatSwiftAllocates() throws {
        let size = 256 << 20
        let before = try #require(Allocator.allocatedBytes())
        let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
        let during = try #require(Allocator.allocatedBytes())
        memory.deallocate()
        let after = try #require(Allocator.allocatedBytes())
        // What other tests allocate meanwhile is much less.
        #expect(during - before > size / 2)
        #expect(during - after > size / 2)
    }

    @Test func purgesInTheBackgroundOnceAsked() throws {
        try Allocator.purgeInBackground()
        #expect(Allocator.purgesInBackground)
    }
}
