import SyncModel
import Synchronization

/// Which downloads of devices were answered as a whole, and whether an upload to the same table followed.
///
/// A client that follows the document uploads to a table after it has stored what it downloaded of it; where a download fails, its sync
/// ends. So when a device has the `Ts` of an upload that was sent after an answer, it has that answer. In memory only: what is
/// forgotten is sent again.
final class RestAnswers: Sendable {
    private struct Key: Hashable {
        let device: Device
        let table: Int
    }

    private struct Answer {
        /// The device has everything up to here if it has the answer.
        let end: TimeStamp
        var isFollowed = false
    }

    /// About 300 bytes each; beyond it all are forgotten.
    private static let maximumCount = 50_000

    private let answers = Mutex<[Key: Answer]>([:])

    /// The whole answer to a download was made.
    func answered(_ device: Device, _ table: Int, upTo end: TimeStamp) {
        answers.withLock { answers in
            if answers.count >= Self.maximumCount { answers = [:] }
            answers[Key(device: device, table: table)] = Answer(end: end)
        }
    }

    /// An upload of the device was stored.
    func uploaded(_ device: Device, _ table: Int) {
        answers.withLock { $0[Key(device: device, table: table)]?.isFollowed = true }
    }

    /// Up to where a device that has this `Ts` has everything; zero where nothing is known.
    func received(_ device: Device, _ table: Int, ts: TimeStamp) -> TimeStamp {
        answers.withLock { answers in
            guard let answer = answers[Key(device: device, table: table)], answer.isFollowed, ts > answer.end else {
                return .zero
            }
            return answer.end
        }
    }
}
