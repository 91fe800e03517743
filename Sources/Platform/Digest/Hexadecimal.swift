/// Bytes as lower-case hexadecimal digits, two for each byte.
package func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
    let digits: StaticString = "0123456789abcdef"
    return String(unsafeUninitializedCapacity: 2 * bytes.count) { buffer in
        var position = 0
        for byte in bytes {
            buffer[position] = digits.utf8Start[Int(byte >> 4)]
            buffer[position + 1] = digits.utf8Start[Int(byte & 0xF)]
            position += 2
        }
        return position
    }
}
