extension ChangeLog {
    /// Reads a partition from an offset, after checking the record before it where the log still holds that.
    ///
    /// A recreated topic may have grown beyond an offset that was reached in its predecessor: starting there would skip
    /// the records before it.
    ///
    /// - Parameter isKnown: whether a record is the one that the caller worked on last.
    /// - Returns: `nil` where it is another one.
    package func reader(
        of partition: TopicPartition, from offset: Int64, following isKnown: (LogRecord) async throws -> Bool
    ) async throws -> Reader? {
        let range = try await range(of: partition)
        guard range.start < offset, offset <= range.end else { return try await reader(of: partition, from: offset) }
        let reader: Reader
        do {
            reader = try await self.reader(of: partition, from: offset - 1)
        } catch {
            guard error.reports(startAt: offset) else { throw error }
            return try await self.reader(of: partition, from: offset)
        }
        do {
            let records = try await reader.next(maximumBytes: 1)
            if records.count == 1, records[0].offset == offset - 1, try await isKnown(records[0]) { return reader }
        } catch {
            await reader.close()
            guard let error = error as? ChangeLogError, error.reports(startAt: offset) else { throw error }
            return try await self.reader(of: partition, from: offset)
        }
        await reader.close()
        return nil
    }

    /// The first record at or after an offset below the end; waits for none.
    package func first(of partition: TopicPartition, from offset: Int64) async throws -> LogRecord? {
        let reader = try await reader(of: partition, from: offset)
        let records: [LogRecord]
        do {
            records = try await reader.next(maximumBytes: 1)
        } catch {
            await reader.close()
            throw error
        }
        await reader.close()
        return records.first
    }
}

extension ChangeLogError {
    /// Whether retention has meanwhile taken everything before an offset.
    fileprivate func reports(startAt offset: Int64) -> Bool {
        if case .outOfRange(let range) = code { range.start == offset } else { false }
    }
}
