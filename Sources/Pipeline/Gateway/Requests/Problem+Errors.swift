import ChangeLog
import FanOutLink

extension Problem {
    /// The problem for an error of the log or the fan-out.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case FanOutError.pending:
            self.init(
                .outcomePending,
                "the batch is durable, its outcome is not known yet: repeat the request with the same batch number")
        case FanOutError.notReady(let reason): self.init(.notReady, reason)
        case FanOutError.closed: self.init(.notReady, "the server is stopping")
        case let error as ChangeLogError where error.code == .storageFull:
            self.init(.storageFull, "the log has no space left for uploads", retryAfter: 5)
        case let error as ChangeLogError:
            if case .recordTooLarge = error.code {
                self.init(.batchTooLarge, "the batch is larger than the log's largest record")
            } else {
                self.init(.notReady, "uploads cannot be appended to the log at the moment")
            }
        default: self.init(.notReady, "the request was cancelled")
        }
    }
}
