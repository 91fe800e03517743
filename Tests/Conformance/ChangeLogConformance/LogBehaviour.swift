import ChangeLog
import Testing

/// A behaviour of every log, and its test through the port.
package struct LogBehaviour<Subject: LogUnderTest>: Sendable, CustomTestStringConvertible {
    /// The behaviour, as text.
    package let testDescription: String
    private let settings: LogSettings
    private let body: @Sendable (Subject, Subject.Log) async throws -> Void

    init(
        _ description: String, settings: LogSettings = LogSettings(),
        _ body: @escaping @Sendable (Subject, Subject.Log) async throws -> Void
    ) {
        testDescription = description
        self.settings = settings
        self.body = body
    }

    package static var all: [LogBehaviour] {
        appending + reading + waiting + failing + groups + handover + reopening
    }

    /// Tests the behaviour with a new log, and closes the log also after a failure.
    package func check(_ subject: Subject) async throws {
        let log = try await subject.open(settings)
        do {
            try await body(subject, log)
        } catch {
            try await subject.close(log)
            throw error
        }
        try await subject.close(log)
    }
}

/// Expects an error of the log.
func expectError(
    _ code: ChangeLogError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async {
    let error = await #expect(throws: ChangeLogError.self, sourceLocation: sourceLocation) { try await body() }
    if let error { #expect(error.code == code, sourceLocation: sourceLocation) }
}

extension ChangeLog {
    /// Appends values to a partition, each in a separate call.
    func append(_ values: [String], to partition: TopicPartition) async throws {
        let producer = try await producer()
        for value in values { try await producer.append([NewRecord(to: partition, value: Array(value.utf8))]) }
        await producer.close()
    }

    /// Reads the values of so many records.
    func values(of partition: TopicPartition, from offset: Int64 = 0, count: Int) async throws -> [String] {
        try await records(of: partition, from: offset, count: count).map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// Reads so many records.
    func records(of partition: TopicPartition, from offset: Int64 = 0, count: Int) async throws -> [LogRecord] {
        let reader = try await reader(of: partition, from: offset)
        var records: [LogRecord] = []
        while records.count < count { records += try await reader.next(maximumBytes: 1 << 20) }
        await reader.close()
        return records
    }
}
