import CRdkafka
import Synchronization
import ThreadExecutor

/// A client of librdkafka.
///
/// Any thread may call it. One thread serves its events with ``poll(milliseconds:)``. Its owner closes it; later calls fail.
///
/// `@unchecked Sendable`: any thread may use librdkafka's handles; both are freed only in ``close(on:)``, after the last use.
package final class KafkaClient: @unchecked Sendable {
    package enum Kind: Sendable {
        /// Also used for queries.
        case producer
        /// With or without a group.
        case consumer
    }

    /// The events that a client reports, besides errors and log lines.
    package enum Events: Sendable {
        case none
        /// Delivery reports.
        case deliveries
        /// Rebalances, and the results of commits.
        case group
    }

    private struct State {
        /// Calls in progress.
        var uses = 0
        var isClosing = false
        var closers: [CheckedContinuation<Void, Never>] = []
        /// One for each topic that was used.
        var topics: [String: SendablePointer] = [:]
    }

    private let handle: OpaquePointer
    /// The queue that ``poll(milliseconds:)`` reads.
    let queue: OpaquePointer
    private let state = Mutex(State())

    /// Starts librdkafka's threads, which connect when needed.
    package init(_ kind: Kind, _ properties: KafkaProperties, events: Events = .none) throws(KafkaError) {
        var properties = properties
        // Log lines become events: librdkafka would write them to standard error.
        properties.set("log.queue", "true")
        let configuration = try properties.configuration()
        var mask = RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG
        switch events {
        case .none: break
        case .deliveries: mask |= RD_KAFKA_EVENT_DR
        case .group: mask |= RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT
        }
        rd_kafka_conf_set_events(configuration, mask)
        let (created, text) = withErrorText {
            rd_kafka_new(kind == .producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, configuration, $0, $1)
        }
        guard let created else {
            rd_kafka_conf_destroy(configuration)
            throw KafkaError(.invalidArgument, message: text)
        }
        handle = created
        rd_kafka_set_log_queue(created, nil)
        if events == .group {
            // Redirects all events to the consumer's queue.
            rd_kafka_poll_set_consumer(created)
            queue = rd_kafka_queue_get_consumer(created)
        } else {
            queue = rd_kafka_queue_get_main(created)
        }
    }

    deinit { assert(state.withLock { $0.isClosing }, "the owner of a Kafka client closes it") }

    package static var libraryVersion: (Int, Int, Int) {
        // A byte for each number, the fourth for release candidates.
        let version = Int(rd_kafka_version())
        return (version >> 24 & 0xFF, version >> 16 & 0xFF, version >> 8 & 0xFF)
    }

    /// Blocks until the next event; `nil` when the time is up or ``wake()`` was called.
    ///
    /// - Parameter milliseconds: the time limit; `nil` for none.
    package func poll(milliseconds: Int? = nil) throws(KafkaError) -> KafkaEvent? {
        try use { _ in
            rd_kafka_queue_poll(queue, milliseconds.map { Int32(clamping: $0) } ?? -1).map { KafkaEvent($0) }
        }
    }

    /// Ends the current call of ``poll(milliseconds:)``, or the next one.
    package func wake() {
        if begin() {
            rd_kafka_queue_yield(queue)
            end()
        }
    }

    /// The fatal error of the client, if it has one.
    package func fatalError() -> KafkaError? {
        guard begin() else { return nil }
        defer { end() }
        let (code, text) = withErrorText { rd_kafka_fatal_error(handle, $0, $1) }
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        return KafkaError(KafkaErrorCode(code), message: text, isFatal: true)
    }

    /// Waits for the calls in progress, then destroys the client; records that are not delivered are dropped.
    ///
    /// - Parameter thread: blocks while librdkafka's threads end.
    package func close(on thread: DedicatedThread) async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                precondition(!state.isClosing, "a Kafka client is closed only once")
                state.isClosing = true
                if state.uses > 0 { state.closers.append(continuation) }
                return state.uses == 0
            }
            if isIdle { continuation.resume() }
        }
        await thread.run { destroy() }
    }

    /// Lets later calls fail, and destroys nothing: librdkafka's threads continue until the process ends.
    ///
    /// For a client that librdkafka cannot destroy.
    package func abandon() {
        state.withLock { state in
            precondition(!state.isClosing, "a Kafka client is closed only once")
            state.isClosing = true
        }
        Self.abandoned.withLock { $0.append(self) }
    }

    /// They stay referenced, so that their memory is reachable for a leak checker.
    private static let abandoned = Mutex<[KafkaClient]>([])

    private func destroy() {
        let topics = state.withLock { state in
            defer { state.topics = [:] }
            return state.topics.values.map(\.pointer)
        }
        // Before the client: librdkafka waits for everything that refers to it.
        for topic in topics { rd_kafka_topic_destroy(topic) }
        rd_kafka_queue_destroy(queue)
        // A group member has called `leaveGroup()`; closing the consumer again might never return.
        rd_kafka_destroy_flags(handle, Int32(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE))
    }

    /// Runs calls of librdkafka, for which a close waits.
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

    /// librdkafka's object for a topic, to be used within ``use(_:)``; it lives as long as the client.
    func topic(_ name: String, _ handle: OpaquePointer) throws(KafkaError) -> OpaquePointer {
        let topic: SendablePointer? = state.withLock { state in
            if let known = state.topics[name] { return known }
            guard let created = rd_kafka_topic_new(handle, name, nil) else { return nil }
            state.topics[name] = SendablePointer(pointer: created)
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

/// An object of librdkafka that any thread may use.
struct SendablePointer: @unchecked Sendable {
    let pointer: OpaquePointer
}
