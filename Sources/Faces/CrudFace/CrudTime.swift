import SyncModel

/// Times of the protocol, RFC 3339 in UTC with three decimals, of rows that have microseconds.
enum CrudTime {
    /// The canonical text of the last microsecond of a time's millisecond.
    ///
    /// Times are compared in milliseconds, an equal one is accepted, and the row shows what the client sent.
    static func endOfMillisecond(_ microseconds: Int64) -> String {
        var bytes: [UInt8] = []
        CanonicalTimestamp.append(microseconds, to: &bytes)
        return String(decoding: bytes.dropLast(4), as: UTF8.self) + "999Z"
    }
}
