import CRdkafka

/// Properties of a librdkafka client, in the order in which they were set; the values of secrets are not shown.
package struct KafkaProperties: Sendable, CustomStringConvertible {
    private struct Property: Sendable {
        let name: String
        let value: String
        let isSecret: Bool
    }

    /// Each name once.
    private var properties: [Property] = []

    package init() {}

    /// Replaces an earlier value.
    package mutating func set(_ name: String, _ value: String, isSecret: Bool = false) {
        properties.removeAll { $0.name == name }
        properties.append(Property(name: name, value: value, isSecret: isSecret))
    }

    package var names: [String] { properties.map(\.name) }

    /// The value of a property that is not secret.
    package subscript(name: String) -> String? { properties.first { $0.name == name && !$0.isSecret }?.value }

    /// The properties, with secrets masked.
    package var description: String {
        properties.map { "\($0.name)=\($0.isSecret ? "***" : $0.value)" }.joined(separator: " ")
    }

    /// Checks each property with librdkafka.
    package func check() throws(KafkaError) { rd_kafka_conf_destroy(try configuration()) }

    /// Creates librdkafka's object, which the caller owns.
    func configuration() throws(KafkaError) -> OpaquePointer {
        let configuration: OpaquePointer = rd_kafka_conf_new()
        for property in properties {
            let (result, text) = withErrorText {
                rd_kafka_conf_set(configuration, property.name, property.value, $0, $1)
            }
            guard result == RD_KAFKA_CONF_OK else {
                rd_kafka_conf_destroy(configuration)
                // librdkafka's text has the value.
                let cause =
                    property.isSecret
                    ? (result == RD_KAFKA_CONF_UNKNOWN ? "no such property" : "the value is not allowed") : text
                throw KafkaError(.invalidArgument, message: "\(property.name): \(cause)")
            }
        }
        return configuration
    }
}

/// Runs a C function that writes an error text into a buffer.
func withErrorText<Result>(_ body: (UnsafeMutablePointer<CChar>, Int) -> Result) -> (Result, String) {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
        buffer.initialize(repeating: 0)
        // The buffer outlives the call, and librdkafka's text ends with NUL within the size.
        let pointer = buffer.baseAddress!
        let result = body(pointer, buffer.count)
        return (result, String(cString: pointer))
    }
}
