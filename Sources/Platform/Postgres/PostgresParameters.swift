/// The parameters of a statement, in Postgres's binary format.
package struct PostgresParameters: Sendable {
    /// Each value's range in `bytes`; `nil` for NULL.
    private(set) var ranges: [Range<Int>?] = []
    private(set) var bytes: [UInt8] = []

    package init() {}

    package init(_ arrays: [BinaryArray]) {
        for array in arrays { append(array) }
    }

    package var count: Int { ranges.count }

    package mutating func appendNull() { ranges.append(nil) }

    /// A `bigint`.
    package mutating func append(_ value: Int64) { append { $0.append(bigEndian: value) } }

    /// An `integer`.
    package mutating func append(_ value: Int32) { append { $0.append(bigEndian: value) } }

    /// A `text`.
    package mutating func append(_ value: String) { append { $0.append(contentsOf: value.utf8) } }

    package mutating func append(_ array: borrowing BinaryArray) {
        let start = bytes.count
        array.write(to: &bytes)
        ranges.append(start..<bytes.count)
    }

    private mutating func append(_ write: (inout [UInt8]) -> Void) {
        let start = bytes.count
        write(&bytes)
        ranges.append(start..<bytes.count)
    }

    /// Passes the values as libpq's arrays of pointers, lengths and formats.
    func withPointers<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<Int32>, UnsafePointer<Int32>) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { raw in
            // An empty value needs an address: a null pointer means NULL.
            let base = raw.baseAddress ?? UnsafeRawPointer(Self.emptyValue)
            let values = ranges.map { range in
                range.map { base.advanced(by: $0.lowerBound).assumingMemoryBound(to: CChar.self) }
            }
            let lengths = ranges.map { Int32($0?.count ?? 0) }
            let formats = [Int32](repeating: 1, count: ranges.count)
            return body(values, lengths, formats)
        }
    }

    /// Never read.
    private nonisolated(unsafe) static let emptyValue = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
}
