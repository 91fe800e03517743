/// The header `Range` (RFC 9110, 14.2), with one range of bytes.
enum ByteRange: Equatable {
    /// There is none, or one that may be ignored: in another unit, malformed, or several.
    case whole
    case part(Range<Int>)
    /// It has no byte of the file.
    case none

    init(_ field: String?, of count: Int) {
        self = .whole
        guard let field, field.lowercased().hasPrefix("bytes=") else { return }
        let spec = field.dropFirst("bytes=".count)
        let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return }
        let (first, last) = (Self.number(ends[0]), Self.number(ends[1]))
        switch (ends[0].isEmpty, ends[1].isEmpty) {
        case (true, true): return
        case (true, false):
            guard let last else { return }
            self = last == 0 || count == 0 ? .none : .part(max(0, count - last)..<count)
        case (false, true):
            guard let first else { return }
            self = first < count ? .part(first..<count) : .none
        case (false, false):
            guard let first, let last, first <= last else { return }
            self = first < count ? .part(first..<(min(last, count - 1) + 1)) : .none
        }
    }

    /// Digits alone; a number above all sizes is the greatest.
    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        return Int(text) ?? Int.max
    }
}
