/// From where in `ordered` a stream that is built from the tables finds every result that they do not hold, in order.
///
/// Usually that is after the worker's own last record. But after a rebalance the partition's previous worker may still append: then
/// results of records that this worker has yet to order can lie before its own. A reader that began after those would get the
/// previous worker's next results first, and drop what this worker repeats as older (I2). So the position stays where the tables
/// had it until they hold every record that anybody else can have ordered.
struct ResultPosition {
    /// No result of a record that the tables do not hold lies before it.
    private var position: Int64
    /// Where this worker's next record goes if no other worker appends.
    private var expected: Int64
    /// The offset in `changes` that the tables must reach before the position moves; `nil` where no other worker has appended.
    private var heldUntil: Int64?

    /// - Parameters:
    ///   - stored: the position that the tables have.
    ///   - end: the end of `ordered`.
    ///   - changesEnd: the end of `changes`, read after `end`.
    init(stored: Int64, end: Int64, changesEnd: Int64) {
        position = stored
        expected = end
        if end > stored { heldUntil = changesEnd }
    }

    /// Takes the offsets of this worker's next records.
    ///
    /// - Returns: whether somebody else has appended between them; then ``hold(until:)`` must follow.
    mutating func append(_ offsets: [Int64]) -> Bool {
        var isInterrupted = false
        for offset in offsets {
            if offset != expected { isInterrupted = true }
            expected = offset + 1
        }
        return isInterrupted
    }

    /// - Parameter changesEnd: the end of `changes`, read after the records of the other worker.
    mutating func hold(until changesEnd: Int64) { heldUntil = max(heldUntil ?? changesEnd, changesEnd) }

    /// The position to store with tables that hold all records of `changes` before an offset.
    mutating func position(before nextOffset: Int64) -> Int64 {
        if let heldUntil, nextOffset < heldUntil { return position }
        heldUntil = nil
        position = expected
        return position
    }
}
