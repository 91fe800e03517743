/// The parameters of a statement, in Postgres's binary format.
package struct PostgresParameters: Sendable {
    /// Where each value lies in `bytes`; `nil` for NULL.
    private(set) var ranges: [Range<Int>?] = []
    private(set) var bytes: [UInt8] = []

    /// No parameters.
    package init() {}

    /// How many there are.
    package var count: Int { ranges.count }

    /// Appends NULL.
    package mutating func appendNull() { ranges.append(nil) }

    /// Appends a `bigint`.
    package mutating func append(_ value: Int64) { append { $0.append(bigEndian: value) } }

    /// Appends an `integer`.
    package mutating func append(_ value: Int32) { append { $0.append(bigEndian: value) } }

    /// Appends a `text`.
    package mutating func append(_ value: String) { append { $0.append(contentsOf: value.utf8) } }

    /// Appends an array.
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

    /// Lends the values as C wants them.
    func withPointers<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<Int32>, UnsafePointer<Int32>) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { raw in
            // A value of no bytes needs an address all the same: null means NULL.
            let base = raw.baseAddress ?? UnsafeRawPointer(Self.nowhere)
            let values = ranges.map { range in
                range.map { base.advanced(by: $0.lowerBound).assumingMemoryBound(to: CChar.self) }
            }
            let lengths = ranges.map { Int32($0?.count ?? 0) }
            let formats = [Int32](repeating: 1, count: ranges.count)
            return body(values, lengths, formats)
        }
    }

    /// The address of values that have no bytes; never read.
    private nonisolated(unsafe) static let nowhere = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
}
