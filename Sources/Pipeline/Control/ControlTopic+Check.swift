import ChangeLog
import SyncModel
import SyncWire

extension ControlTopic {
    /// A reader of the topic from its start, which holds as many records as were read before.
    func reader<Log: ChangeLog>(of log: Log, holding end: Int64) async throws -> Log.Reader {
        let range = try await log.range(of: Self.partition)
        guard range.start < end, end <= range.end else {
            throw ControlError.historyGone("it holds offsets \(range.start) to \(range.end), and held \(end) records")
        }
        return try await log.reader(of: Self.partition, from: range.start)
    }

    /// Reads the records before an offset, and requires this history's among them.
    ///
    /// - Returns: records after them that were read with them.
    func check(_ reader: some LogReader, before end: Int64) async throws -> [LogRecord] {
        var rest: [LogRecord] = []
        var hasHistory = false
        var next: Int64 = 0
        while next < end, rest.isEmpty {
            for record in try await reader.next(maximumBytes: 1 << 20) {
                guard record.offset < end else {
                    rest.append(record)
                    continue
                }
                next = record.offset + 1
                let decoded: ControlRecord
                // A record of a newer process is not a history that any process started with.
                do { decoded = try ControlRecord(decoding: record.value) } catch { continue }
                guard case .history(let found) = decoded else { continue }
                guard found.epoch.utf8.elementsEqual(history.epoch.utf8) else {
                    throw ControlError.otherHistory(found: found.epoch, own: history.epoch)
                }
                hasHistory = true
            }
        }
        guard hasHistory, next == end else {
            throw ControlError.historyGone("none of its first \(end) records names it")
        }
        return rest
    }
}

extension ControlError {
    /// An error that means that the topic lacks what it held before; `nil` for all others.
    init?(absence error: any Error) {
        switch error {
        case let error as ControlError:
            guard case .historyGone = error else { return nil }
            self = error
        case let error as ChangeLogError:
            switch error.code {
            case .unknownPartition: self = .historyGone("it does not exist")
            case .outOfRange(let range): self = .historyGone("it holds offsets \(range.start) to \(range.end)")
            default: return nil
            }
        default: return nil
        }
    }
}
