extension UInt8 {
    /// Whether the byte is an ASCII digit.
    @inlinable package var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }
}
