extension [UInt8] {
    /// A copy of a span's bytes.
    package init(copying span: Span<UInt8>) {
        self = span.withUnsafeBufferPointer { Array($0) }
    }
}
