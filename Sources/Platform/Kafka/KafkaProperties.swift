import CRdkafka

/// Properties of a librdkafka client, in the order in which they were set; values of secrets are never shown.
package struct KafkaProperties: Sendable, CustomStringConvertible {
    private struct Property: Sendable {
        let name: String
        let value: String
        let isSecret: Bool
    }

    /// No name twice.
    private var properties: [Property] = []

    /// No properties: librdkafka's defaults.
    package init() {}

    /// Sets a property; the last value counts.
    package mutating func set(_ name: String, _ value: String, isSecret: Bool = false) {
        properties.removeAll { $0.name == name }
        properties.append(Property(name: name, value: value, isSecret: isSecret))
    }

    /// The names that are set.
    package var names: [String] { properties.map(\.name) }

    /// The value of a property that is no secret.
    package subscript(name: String) -> String? { properties.first { $0.name == name && !$0.isSecret }?.value }

    /// The properties with secrets masked.
    package var description: String {
        properties.map { "\($0.name)=\($0.isSecret ? "***" : $0.value)" }.joined(separator: " ")
    }

    /// Checks each property by itself, as librdkafka would.
    package func check() throws(KafkaError) { rd_kafka_conf_destroy(try configuration()) }

    /// Makes librdkafka's object, which the caller owns.
    func configuration() throws(KafkaError) -> OpaquePointer {
        let configuration: OpaquePointer = rd_kafka_conf_new()
        for property in properties {
            let (result, words) = withErrorText {
                rd_kafka_conf_set(configuration, property.name, property.value, $0, $1)
            }
            guard result == RD_KAFKA_CONF_OK else {
                rd_kafka_conf_destroy(configuration)
                // The words repeat the value.
                let cause =
                    property.isSecret
                    ? (result == RD_KAFKA_CONF_UNKNOWN ? "no such property" : "the value is not allowed") : words
                throw KafkaError(.invalidArgument, message: "\(property.name): \(cause)")
            }
        }
        return configuration
    }
}

/// Runs a C function that writes its explanation into a buffer.
func withErrorText<Result>(_ body: (UnsafeMutablePointer<CChar>, Int) -> Result) -> (Result, String) {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
        buffer.initialize(repeating: 0)
        // The buffer outlives the call, and the functions end what they write with a zero within its size.
        let pointer = buffer.baseAddress!
        let result = body(pointer, buffer.count)
        return (result, String(cString: pointer))
    }
}
