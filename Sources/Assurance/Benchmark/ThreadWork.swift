/// What threads of the server do, told by their names.
enum ThreadWork: String, Sendable, CaseIterable {
    /// Connections: parsing requests, looking into envelopes, sending answers.
    case http
    /// The cooperative pool: the gateway's tasks, ingest, ordering, and the fan-out's reading of `ordered`.
    case stages
    /// Appending to all topics of the log; in Kafka, its events.
    case log
    /// librdkafka's own threads: batches, compression, connections.
    case kafkaClient = "kafka_client"
    /// Reading older records of the log, and rows of the tables.
    case readers
    /// Writing the tables; in Postgres, reading them, too.
    case store
    /// Writing the streams.
    case fanOutWrites = "fanout_writes"
    /// Reading the streams for pulls.
    case fanOutReads = "fanout_reads"
    case other

    init(threadName: String) {
        self =
            if threadName.hasPrefix("weir-log") || threadName.hasPrefix("weir-kafka") {
                .log
            } else if threadName.hasPrefix("rdk:") {
                .kafkaClient
            } else if threadName.hasPrefix("weir-fan-w") {
                .fanOutWrites
            } else if threadName.hasPrefix("weir-fan-r") {
                .fanOutReads
            } else if threadName.hasPrefix("sqlite-writer") || threadName.hasPrefix("postgres-") {
                .store
            } else if threadName.hasPrefix("sqlite-read") {
                .readers
            } else if threadName.hasPrefix("MHD-") {
                .http
            } else if threadName.hasSuffix("default-qos") || threadName.hasSuffix("overcommit") {
                // Named after the queues of libdispatch, on whose workers tasks run.
                .stages
            } else {
                .other
            }
    }
}
