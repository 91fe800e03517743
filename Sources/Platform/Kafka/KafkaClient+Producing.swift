import CRdkafka

package struct KafkaRecord: Sendable {
    package let topic: String
    package let partition: Int32
    /// An empty key is not a null key.
    package let key: [UInt8]
    /// An empty value is not a null value, which would be a tombstone.
    package let value: [UInt8]

    package init(topic: String, partition: Int32, key: [UInt8], value: [UInt8]) {
        self.topic = topic
        self.partition = partition
        self.key = key
        self.value = value
    }
}

extension KafkaClient {
    /// Copies records into the client's queue, in order, and returns at once; each gets a delivery report with its tag.
    ///
    /// - Returns: how many records were enqueued, and the error of the next one.
    package func produce(
        _ records: some Sequence<(tag: UInt, record: KafkaRecord)>
    ) -> (count: Int, error: KafkaError?) {
        var count = 0
        do throws(KafkaError) {
            try use { (handle) throws(KafkaError) in
                for (tag, record) in records {
                    try produce(record, tag: tag, handle)
                    count += 1
                }
            }
            return (count, nil)
        } catch {
            return (count, error)
        }
    }

    private func produce(_ record: KafkaRecord, tag: UInt, _ handle: OpaquePointer) throws(KafkaError) {
        let topic = try topic(record.topic, handle)
        let error = record.key.withUnsafeBytes { key in
            record.value.withUnsafeBytes { value in
                // The call copies both. A null pointer would mean a null key or value.
                withUnsafePointer(to: 0 as UInt8) { nothing in
                    crdkafka_produce(
                        handle, topic, record.partition, key.baseAddress ?? UnsafeRawPointer(nothing), key.count,
                        value.baseAddress ?? UnsafeRawPointer(nothing), value.count,
                        UnsafeMutableRawPointer(bitPattern: tag))
                }
            }
        }
        if let error { throw KafkaError(taking: error, during: "\(record.topic)[\(record.partition)]") }
    }

    /// Drops every record that is not delivered; their delivery reports have an error.
    package func purge() {
        do throws(KafkaError) {
            try use { (handle) throws(KafkaError) in
                let flags = RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING
                let code = rd_kafka_purge(handle, flags)
                if let error = KafkaError(code) { throw error }
            }
        } catch {
            // Only a client that is closed or no producer fails, and it has no records.
            assert(error.code == .closed, "a producer can be purged")
        }
    }
}
