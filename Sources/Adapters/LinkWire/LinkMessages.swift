import FanOutLink
import SyncModel

/// What a gateway says to a fan-out (link.proto).
package enum LinkRequest: Sendable, Hashable {
    /// The first message of each connection: the history served, and whether ``LinkReply/passed(_:)`` is wanted.
    case hello(epoch: String, wantsPassed: Bool)
    /// A question under a number of the gateway's, with the time that its answer may take.
    case ask(number: Int64, within: Duration, LinkQuery)
    /// Nobody waits for these any more.
    case cancel([Int64])
    /// Tells of moves of these owners from now on, and of their heads at once.
    case subscribe([SyncID])
    /// Tells of these no more.
    case unsubscribe([SyncID])
    /// The gateway is there, and has received so many bytes.
    case ping(received: Int64)
    /// A kind that this version does not know.
    case unknown
}

/// What a gateway asks.
package enum LinkQuery: Sendable, Hashable {
    /// Rows.
    case pull(PagePull)
    /// What became of a part.
    case outcome(PartReference)
    /// What is kept of a batch.
    case keptOutcome(batch: Int64, key: DeviceKey)
    /// The newest timeStamps.
    case heads([SyncID])
}

/// What a fan-out says to a gateway (link.proto).
package enum LinkReply: Sendable, Hashable {
    /// What is served, at first and after each change.
    case description(LinkDescription)
    /// The answer to the question of that number.
    case answer(number: Int64, LinkAnswer)
    /// Heads that moved.
    case moves([SyncID: TimeStamp])
    /// Everything up to these uploads can be pulled.
    case passed([UploadReference])
    /// The fan-out is there.
    case pong
    /// The fan-out knows the connection not or no longer; why, in words.
    case goodbye(String)
    /// A kind that this version does not know.
    case unknown
}

/// What a fan-out answers.
package enum LinkAnswer: Sendable, Hashable {
    /// One page for each owner.
    case pages([OwnerPage])
    /// What became of a part.
    case outcome(PartOutcome)
    /// What is kept.
    case keptOutcome(PartOutcome?)
    /// One for each owner.
    case heads([TimeStamp])
    /// Why there is no answer.
    case failure(FanOutError)
}

/// What a fan-out serves.
package struct LinkDescription: Sendable, Hashable {
    /// The history.
    package var epoch: String
    /// How many partitions it has.
    package var partitions: Int
    /// Those that are served and ready.
    package var ready: Set<Int>

    /// Describes a fan-out.
    package init(epoch: String, partitions: Int, ready: Set<Int> = []) {
        self.epoch = epoch
        self.partitions = partitions
        self.ready = ready
    }
}

/// The version of the messages.
package enum LinkFormat {
    /// What messages state as `format`, and the newest that this code reads.
    package static let current = 1

    /// The longest wait that a question may name.
    package static let longestWait = Duration.seconds(86_400)
}
