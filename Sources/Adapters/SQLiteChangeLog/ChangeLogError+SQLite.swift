import ChangeLog
import SQLite
import ThreadExecutor

extension ChangeLogError {
    init(_ error: any Error, partition: TopicPartition?) {
        switch error {
        case let error as ChangeLogError: self = error
        case let error as SQLiteError: self.init(error, partition: partition)
        case let error as PoolUnavailable:
            switch error {
            case .closed: self = .closed("the log", partition: partition)
            case .overloaded: self.init(.other, partition: partition, message: "\(error)", isRetriable: true)
            }
        default: self.init(.other, partition: partition, message: "\(error)")
        }
    }

    private init(_ error: SQLiteError, partition: TopicPartition?) {
        let code: Code
        // Free space, permissions, the disk and another process's lock may change; anything else needs an operator.
        var isRetriable = false
        if error.isFull {
            code = .storageFull
            isRetriable = true
        } else if error.isReadOnly {
            code = .readOnly
            isRetriable = true
        } else if error.isCorrupt {
            code = .corrupt
        } else if error.isInputOutput || error.isBusy {
            code = .inputOutput
            isRetriable = true
        } else {
            code = .other
        }
        self.init(code, partition: partition, message: error.description, isRetriable: isRetriable)
    }

    static func translating<Result>(
        _ partition: TopicPartition?, _ body: () throws -> Result
    ) throws(ChangeLogError) -> Result {
        do {
            return try body()
        } catch {
            throw ChangeLogError(error, partition: partition)
        }
    }
}
