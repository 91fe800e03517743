import CRdkafka

/// An ACL: what a user may or may not do with a topic or group.
package struct KafkaAccessRule: Sendable {
    package enum Resource: Sendable {
        case topic(String)
        case group(String)
    }

    package enum Operation: Sendable {
        case all, read, write, describe
    }

    let resource: Resource
    let isPrefix: Bool
    let user: String
    let operation: Operation
    let isAllowed: Bool

    /// - Parameters:
    ///   - isPrefix: whether the rule applies to all resources with this prefix.
    ///   - isAllowed: a rule that denies overrides all rules that allow.
    package init(_ resource: Resource, isPrefix: Bool = false, user: String, _ operation: Operation, isAllowed: Bool) {
        self.resource = resource
        self.isPrefix = isPrefix
        self.user = user
        self.operation = operation
        self.isAllowed = isAllowed
    }
}

/// ACLs, for tests; the calls block until the response or the time limit.
extension KafkaClient {
    package func add(_ rule: KafkaAccessRule, milliseconds: Int) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            var binding: OpaquePointer? = try rule.binding {
                rd_kafka_AclBinding_new($0, $1, $2, $3, $4, $5, $6, $7, $8)
            }
            defer { rd_kafka_AclBinding_destroy(binding) }
            let event = try request(RD_KAFKA_ADMIN_OP_CREATEACLS, milliseconds, handle) { options, responses in
                rd_kafka_CreateAcls(handle, &binding, 1, options, responses)
            }
            var count = 0
            let results = rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(event.pointer), &count)
            for result in UnsafeBufferPointer(start: results, count: count) {
                if let error = Self.error(rd_kafka_acl_result_error(result)) { throw error }
            }
        }
    }

    package func remove(_ rule: KafkaAccessRule, milliseconds: Int) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            var filter: OpaquePointer? = try rule.binding {
                rd_kafka_AclBindingFilter_new($0, $1, $2, $3, $4, $5, $6, $7, $8)
            }
            defer { rd_kafka_AclBinding_destroy(filter) }
            let event = try request(RD_KAFKA_ADMIN_OP_DELETEACLS, milliseconds, handle) { options, responses in
                rd_kafka_DeleteAcls(handle, &filter, 1, options, responses)
            }
            var count = 0
            let results = rd_kafka_DeleteAcls_result_responses(
                rd_kafka_event_DeleteAcls_result(event.pointer), &count)
            for result in UnsafeBufferPointer(start: results, count: count) {
                if let error = Self.error(rd_kafka_DeleteAcls_result_response_error(result)) { throw error }
            }
        }
    }

    /// The error of a result; the event owns the object.
    private static func error(_ error: OpaquePointer?) -> KafkaError? {
        guard let error, rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        return KafkaError(
            KafkaErrorCode(rd_kafka_error_code(error)), message: String(cString: rd_kafka_error_string(error)))
    }
}

extension KafkaAccessRule {
    /// librdkafka's object for the rule, or the filter that matches it.
    fileprivate func binding(
        _ make: (
            rd_kafka_ResourceType_t, String, rd_kafka_ResourcePatternType_t, String, String, rd_kafka_AclOperation_t,
            rd_kafka_AclPermissionType_t, UnsafeMutablePointer<CChar>?, Int
        ) -> OpaquePointer?
    ) throws(KafkaError) -> OpaquePointer {
        let (kind, name) =
            switch resource {
            case .topic(let name): (RD_KAFKA_RESOURCE_TOPIC, name)
            case .group(let name): (RD_KAFKA_RESOURCE_GROUP, name)
            }
        let operation =
            switch operation {
            case .all: RD_KAFKA_ACL_OPERATION_ALL
            case .read: RD_KAFKA_ACL_OPERATION_READ
            case .write: RD_KAFKA_ACL_OPERATION_WRITE
            case .describe: RD_KAFKA_ACL_OPERATION_DESCRIBE
            }
        let (binding, reason) = withErrorText { text, size in
            make(
                kind, name, isPrefix ? RD_KAFKA_RESOURCE_PATTERN_PREFIXED : RD_KAFKA_RESOURCE_PATTERN_LITERAL,
                "User:\(user)", "*", operation,
                isAllowed ? RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW : RD_KAFKA_ACL_PERMISSION_TYPE_DENY, text, size)
        }
        guard let binding else { throw KafkaError(.invalidArgument, message: reason) }
        return binding
    }
}
