import CRdkafka
import Synchronization
import ThreadExecutor

/// A client of librdkafka: a producer, a consumer, or what asks questions.
///
/// Any thread may call it. One thread serves its events with ``poll(milliseconds:)``. Whoever makes it closes it, once nothing
/// new will be asked of it; a call after that fails.
///
/// `@unchecked Sendable`: librdkafka's handles may be used by any thread; both are freed in ``close()`` alone, after the last
/// use has ended.
package final class KafkaClient: @unchecked Sendable {
    /// What a client is for.
    package enum Kind: Sendable {
        /// Produces, and asks questions.
        case producer
        /// Reads, with or without a group.
        case consumer
    }

    /// Events that a client reports besides errors and log lines.
    package enum Events: Sendable {
        /// None.
        case none
        /// What became of messages.
        case deliveries
        /// Rebalances, and what became of commits.
        case group
    }

    private struct State {
        /// Calls under way.
        var uses = 0
        var isClosing = false
        var closers: [CheckedContinuation<Void, Never>] = []
        /// As many as topics are used.
        var topics: [String: SendablePointer] = [:]
    }

    private let handle: OpaquePointer
    /// The queue that ``poll(milliseconds:)`` serves.
    let queue: OpaquePointer
    private let state = Mutex(State())

    /// Makes a client, whose threads start at once; it connects when it must.
    package init(_ kind: Kind, _ properties: KafkaProperties, events: Events = .none) throws(KafkaError) {
        var properties = properties
        // Log lines come as events: librdkafka would write them to standard error.
        properties.set("log.queue", "true")
        let configuration = try properties.configuration()
        var mask = RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG
        switch events {
        case .none: break
        case .deliveries: mask |= RD_KAFKA_EVENT_DR
        case .group: mask |= RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT
        }
        rd_kafka_conf_set_events(configuration, mask)
        let (made, words) = withErrorText {
            rd_kafka_new(kind == .producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, configuration, $0, $1)
        }
        guard let made else {
            rd_kafka_conf_destroy(configuration)
            throw KafkaError(.invalidArgument, message: words)
        }
        handle = made
        rd_kafka_set_log_queue(made, nil)
        if events == .group {
            // From now on the consumer's queue has everything.
            rd_kafka_poll_set_consumer(made)
            queue = rd_kafka_queue_get_consumer(made)
        } else {
            queue = rd_kafka_queue_get_main(made)
        }
    }

    deinit {
        assert(state.withLock { $0.isClosing }, "a client of Kafka is closed by whoever made it")
    }

    /// librdkafka's version.
    package static var libraryVersion: (Int, Int, Int) {
        // A byte for each number, the fourth for candidates of a release.
        let version = Int(rd_kafka_version())
        return (version >> 24 & 0xFF, version >> 16 & 0xFF, version >> 8 & 0xFF)
    }

    /// Waits for the next event; `nil` when the time is up or ``wake()`` was called.
    ///
    /// Blocks its thread, so it belongs on one of its own.
    ///
    /// - Parameter milliseconds: how long to wait; `nil` means for ever.
    package func poll(milliseconds: Int? = nil) throws(KafkaError) -> KafkaEvent? {
        try use { _ in
            rd_kafka_queue_poll(queue, milliseconds.map { Int32(clamping: $0) } ?? -1).map { KafkaEvent($0) }
        }
    }

    /// Ends the wait of ``poll(milliseconds:)``, or the next one at once.
    package func wake() {
        // A client that is closed has nobody to wake.
        if begin() {
            rd_kafka_queue_yield(queue)
            end()
        }
    }

    /// The error that ended the client, if one did.
    package func fatalError() -> KafkaError? {
        guard begin() else { return nil }
        defer { end() }
        let (code, words) = withErrorText { rd_kafka_fatal_error(handle, $0, $1) }
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        return KafkaError(KafkaErrorCode(code), message: words, isFatal: true)
    }

    /// Waits for the calls under way, then ends the client; what is enqueued is given up.
    ///
    /// - Parameter thread: where to wait while librdkafka's threads end.
    package func close(on thread: DedicatedThread) async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                precondition(!state.isClosing, "a client of Kafka is closed once")
                state.isClosing = true
                if state.uses > 0 { state.closers.append(continuation) }
                return state.uses == 0
            }
            if isIdle { continuation.resume() }
        }
        await thread.run { destroy() }
    }

    private func destroy() {
        let topics = state.withLock { state in
            defer { state.topics = [:] }
            return state.topics.values.map(\.pointer)
        }
        // librdkafka waits for what refers to the client.
        for topic in topics { rd_kafka_topic_destroy(topic) }
        rd_kafka_queue_destroy(queue)
        // A consumer of a group has left it, as far as it could; closing it again might wait for ever.
        rd_kafka_destroy_flags(handle, Int32(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE))
    }

    /// Runs calls to librdkafka, which a close waits for.
    func use<Result: ~Copyable>(
        _ body: (OpaquePointer) throws(KafkaError) -> Result
    ) throws(KafkaError) -> Result {
        guard begin() else { throw KafkaError(.closed, message: "the client was closed") }
        defer { end() }
        return try body(handle)
    }

    private func begin() -> Bool {
        state.withLock { state in
            if state.isClosing { return false }
            state.uses += 1
            return true
        }
    }

    private func end() {
        let closers: [CheckedContinuation<Void, Never>] = state.withLock { state in
            state.uses -= 1
            guard state.uses == 0 else { return [] }
            defer { state.closers = [] }
            return state.closers
        }
        for closer in closers { closer.resume() }
    }

    /// librdkafka's object for a topic, within ``use(_:)``; it lives as long as the client.
    func topic(_ name: String, _ handle: OpaquePointer) throws(KafkaError) -> OpaquePointer {
        let topic: SendablePointer? = state.withLock { state in
            if let known = state.topics[name] { return known }
            guard let made = rd_kafka_topic_new(handle, name, nil) else { return nil }
            state.topics[name] = SendablePointer(pointer: made)
            return state.topics[name]
        }
        guard let topic else {
            throw KafkaError(rd_kafka_last_error(), during: name)
                ?? KafkaError(.unknownTopic, message: "\(name): no such topic")
        }
        return topic.pointer
    }
}

extension KafkaErrorCode {
    /// The client was closed.
    package static let closed = KafkaErrorCode(RD_KAFKA_RESP_ERR__DESTROY)
}

/// A handle of librdkafka that any thread may use.
struct SendablePointer: @unchecked Sendable {
    let pointer: OpaquePointer
}
