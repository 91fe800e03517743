import FanOutLink
import SyncModel
import SyncWire

/// A message from a gateway to a fan-out (link.proto).
package enum GatewayMessage: Sendable, Hashable {
    /// The first message of each connection: the gateway's epoch, and whether it wants ``FanOutMessage/passed(_:)``.
    case hello(epoch: String, wantsPassed: Bool)
    /// A request with a number that the gateway chooses; `within` is how long the fan-out may wait before it responds.
    case request(number: Int64, within: Duration, LinkRequest)
    /// The gateway no longer waits for the responses to these requests.
    case cancel([Int64])
    /// Subscribes to the heads of these owners; the current heads are sent at once.
    case subscribe([SyncID])
    case unsubscribe([SyncID])
    /// A heartbeat, with the bytes received in this connection so far.
    case ping(received: Int64)
    /// A kind that this version does not know.
    case unknown
}

/// A request, which a fan-out answers with one ``LinkResponse``.
package enum LinkRequest: Sendable, Hashable {
    case pull(PagePull)
    case outcome(PartReference, rows: RowWindow?)
    case keptOutcome(batch: Int64, key: DeviceKey, rows: RowWindow?)
    case heads([SyncID])
    case rows(StreamQuery)
}

/// A message from a fan-out to a gateway (link.proto).
package enum FanOutMessage: Sendable, Hashable {
    /// What the fan-out serves: sent after `hello`, and again after each change.
    case description(LinkDescription)
    /// The response to the request with that number.
    case response(number: Int64, LinkResponse)
    /// New heads of subscribed owners.
    case moves([SyncID: TimeStamp])
    /// What streams have applied since the last message, and at first all of it.
    case passed([StreamReport])
    /// The response to a ping.
    case pong
    /// The fan-out does not know the connection, or has closed it, for this reason.
    case goodbye(String)
    /// A kind that this version does not know.
    case unknown
}

/// The response to a ``LinkRequest``.
package enum LinkResponse: Sendable, Hashable {
    /// One page for each owner, in the order of the request.
    case pages([OwnerPage])
    case outcome(PartOutcome)
    /// `nil`: no outcome is stored.
    case keptOutcome(PartOutcome?)
    /// One for each owner, in the order of the request.
    case heads([TimeStamp])
    /// `nil`: the query is from another history.
    case rows(StreamRows?)
    case failure(FanOutError)
}

/// What a fan-out serves.
package struct LinkDescription: Sendable, Hashable {
    package var epoch: String
    /// The number of partitions of the epoch.
    package var partitions: Int
    /// The partitions that are ready.
    package var ready: Set<Int>

    package init(epoch: String, partitions: Int, ready: Set<Int> = []) {
        self.epoch = epoch
        self.partitions = partitions
        self.ready = ready
    }
}

/// The version of the messages.
package enum LinkFormat {
    /// The `format` of each message, and the newest that this code reads.
    package static let current = 1

    /// The longest wait that a request may name.
    package static let longestWait = Duration.seconds(86_400)
}

extension LinkConfiguration {
    /// The limits for received messages.
    var wireLimits: WireLimits {
        WireLimits(
            byteCount: maximumMessageBytes, fieldCount: WireLimits.standard.fieldCount,
            depth: WireLimits.standard.depth)
    }
}
