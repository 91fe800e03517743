import SyncModel

/// Writes protobuf messages in the contract's only encoding: shortest numbers, and no scalar that is zero, false or
/// empty unless it has presence.
///
/// Fields are written by ascending number. A body runs twice, first to measure and then to write into one allocation of that
/// size, and must do the same each time.
package struct WireWriter: ~Copyable {
    /// The output; `nil` while measuring.
    ///
    /// The memory of the array that ``encode(_:)`` creates. The writer does not escape from it; every access is below
    /// `capacity`, its size.
    private let target: UnsafeMutableRawPointer?
    private let capacity: Int
    private var offset = 0
    /// The sizes of the nested messages, in the order in which they begin: measured, then written.
    private var sizes: [Int]
    private var nextSize = 0

    private init(target: UnsafeMutableRawPointer?, capacity: Int, sizes: [Int] = []) {
        self.target = target
        self.capacity = capacity
        self.sizes = sizes
    }

    package static func encode(_ body: (inout WireWriter) -> Void) -> [UInt8] {
        var counter = WireWriter(target: nil, capacity: .max)
        body(&counter)
        let (size, sizes) = (counter.offset, counter.sizes)
        guard size > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            var writer = WireWriter(
                target: UnsafeMutableRawPointer(buffer.baseAddress), capacity: size, sizes: sizes)
            body(&writer)
            precondition(writer.offset == size, "a message is written as it was measured")
            count = size
        }
    }

    @inline(__always)
    package static func size(of body: (inout WireWriter) -> Void) -> Int {
        var counter = WireWriter(target: nil, capacity: .max)
        body(&counter)
        return counter.offset
    }

    /// Omitted when zero.
    @inline(__always)
    package mutating func number(_ field: Int, _ value: Int64) {
        precondition(value >= 0, "the contract has no negative number here")
        if value != 0 { present(field, value) }
    }

    /// Omitted when zero.
    @inline(__always)
    package mutating func number(_ field: Int, _ value: Int) { number(field, Int64(value)) }

    /// With presence: omitted only when `nil`.
    @inline(__always)
    package mutating func present(_ field: Int, _ value: Int64?) {
        guard let value else { return }
        precondition(value >= 0, "the contract has no negative number here")
        tag(field, .varint)
        varint(UInt64(value))
    }

    /// Zigzag; omitted when zero.
    @inline(__always)
    package mutating func signed(_ field: Int, _ value: Int64) {
        if value != 0 { presentSigned(field, value) }
    }

    /// Zigzag, with presence: omitted only when `nil`.
    @inline(__always)
    package mutating func presentSigned(_ field: Int, _ value: Int64?) {
        guard let value else { return }
        tag(field, .varint)
        varint(UInt64(bitPattern: value << 1 ^ value >> 63))
    }

    /// Omitted when false.
    @inline(__always)
    package mutating func flag(_ field: Int, _ value: Bool) {
        if value { present(field, 1) }
    }

    /// Omitted when zero.
    @inline(__always)
    package mutating func timeStamp(_ field: Int, _ value: TimeStamp) { number(field, value.rawValue) }

    @inline(__always)
    package mutating func member(_ field: Int, _ value: some WireEnum) {
        tag(field, .varint)
        varint(value.wireNumber)
    }

    /// Omitted when empty.
    @inline(__always)
    package mutating func text(_ field: Int, _ value: String) {
        if !value.isEmpty { element(field, value) }
    }

    /// For elements of lists and text with presence: written even when empty.
    @inline(__always)
    package mutating func element(_ field: Int, _ value: String) {
        let count = value.utf8.count
        header(field, count)
        guard target != nil else {
            offset += count
            return
        }
        let isCopied: Void? = value.utf8.withContiguousStorageIfAvailable { append(UnsafeRawBufferPointer($0)) }
        if isCopied == nil { append(bytes: value.utf8) }
    }

    @inline(__always)
    package mutating func id(_ field: Int, _ value: some OpaqueID) { element(field, value.text) }

    /// Omitted when empty.
    @inline(__always)
    package mutating func bytes(_ field: Int, _ value: [UInt8]) {
        guard !value.isEmpty else { return }
        presentBytes(field, value)
    }

    /// Omitted when empty.
    package mutating func bytes(_ field: Int, _ value: Span<UInt8>) {
        guard !value.isEmpty else { return }
        header(field, value.count)
        value.withUnsafeBytes { append($0) }
    }

    /// With presence: omitted only when `nil`.
    @inline(__always)
    package mutating func presentBytes(_ field: Int, _ value: [UInt8]?) {
        guard let value else { return }
        header(field, value.count)
        value.withUnsafeBytes { append($0) }
    }

    /// A nested message.
    @inline(__always)
    package mutating func message(_ field: Int, _ body: (inout WireWriter) -> Void) {
        guard target != nil else {
            let (index, start) = (sizes.count, offset)
            sizes.append(0)
            body(&self)
            sizes[index] = offset - start
            return header(field, sizes[index])
        }
        let size = sizes[nextSize]
        nextSize += 1
        header(field, size)
        let end = offset + size
        body(&self)
        precondition(offset == end, "a message is written as it was measured")
    }

    @inline(__always)
    private mutating func header(_ field: Int, _ count: Int) {
        tag(field, .lengthDelimited)
        varint(UInt64(count))
    }

    @inline(__always)
    private mutating func tag(_ field: Int, _ type: WireReader.WireType) {
        varint(UInt64(field) << 3 | UInt64(type.rawValue))
    }

    @inline(__always)
    private mutating func varint(_ value: UInt64) {
        guard let target else {
            offset += (70 - (value | 1).leadingZeroBitCount) / 7
            return
        }
        var rest = value
        while rest >= 0x80 {
            store(UInt8(truncatingIfNeeded: rest) | 0x80, target)
            rest >>= 7
        }
        store(UInt8(truncatingIfNeeded: rest), target)
    }

    @inline(__always)
    private mutating func store(_ byte: UInt8, _ target: UnsafeMutableRawPointer) {
        precondition(offset < capacity, "a message is written as it was measured")
        target.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
        offset += 1
    }

    @inline(__always)
    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if let target, let source = bytes.baseAddress {
            precondition(bytes.count <= capacity - offset, "a message is written as it was measured")
            (target + offset).copyMemory(from: source, byteCount: bytes.count)
        }
        offset += bytes.count
    }

    /// Text without contiguous storage: bridged strings.
    private mutating func append(bytes: String.UTF8View) {
        guard let target else { return }
        for byte in bytes { store(byte, target) }
    }
}
