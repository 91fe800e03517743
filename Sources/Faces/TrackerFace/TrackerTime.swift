import Gateway
import SyncModel

/// Times of the protocol: a timeStamp is microseconds since 1970, and its text RFC 3339 with six decimals.
extension TimeStamp {
    var rfc3339: String { String(microseconds: rawValue) }
}

extension String {
    init(microseconds: Int64) {
        var bytes: [UInt8] = []
        CanonicalTimestamp.append(microseconds, to: &bytes)
        self.init(decoding: bytes, as: UTF8.self)
    }
}

extension FaceRequest {
    /// A query item that is a time; zero where there is none, and for times before 1970.
    func timeStamp(_ name: String) throws(Problem) -> TimeStamp {
        guard let text = try query(name) else { return .zero }
        let time = Array(text.utf8).withUnsafeBufferPointer { CanonicalTimestamp($0.span) }
        guard let time, let timeStamp = TimeStamp(rawValue: max(time.microseconds, 0)) else {
            throw Problem(.invalidRequest, "\(name) must be a time in RFC 3339, with at most six decimals, up to 2255")
        }
        return timeStamp
    }
}
