import ChangeLog
import SQLite

/// Reads older records from the file, on separate threads.
struct LogFileReaders: Sendable {
    private let pool: DatabaseReaderPool

    init(path: String, threads: Int) async throws {
        pool = try await DatabaseReaderPool.open(path: path, count: threads)
    }

    /// Records from an offset to an end, up to the one that reaches `maximumBytes`.
    func read(
        _ partition: TopicPartition, from offset: Int64, to end: Int64, maximumBytes: Int
    ) async throws -> [LogRecord] {
        let records: [LogRecord]
        do {
            records = try await pool.read { connection in
                try Self.read(partition, from: offset, to: end, maximumBytes: maximumBytes, connection)
            }
        } catch let error as CancellationError {
            throw error
        } catch {
            throw ChangeLogError(error, partition: partition)
        }
        if let first = records.first, let last = records.last, last.offset - first.offset + 1 != Int64(records.count) {
            throw ChangeLogError(
                .corrupt, partition: partition,
                message: "records between the offsets \(first.offset) and \(last.offset) are missing in the file")
        }
        return records
    }

    private static func read(
        _ partition: TopicPartition, from offset: Int64, to end: Int64, maximumBytes: Int, _ connection: Connection
    ) throws -> [LogRecord] {
        let table = LogFile.table(of: partition)
        var select = try connection.prepare(
            "SELECT place, time, key, value FROM \(table) WHERE place >= ?1 AND place < ?2 ORDER BY place")
        try select.bind(integer: offset, at: 1)
        try select.bind(integer: end, at: 2)
        var records: [LogRecord] = []
        var bytes = 0
        while records.isEmpty || bytes < maximumBytes, try select.step() {
            let record = LogRecord(
                offset: try select.integer(at: 0), time: try select.integer(at: 1), key: try select.bytes(at: 2),
                value: try select.bytes(at: 3))
            records.append(record)
            bytes += record.size
        }
        return records
    }

    func close() async throws { try await pool.close() }
}
