/// The names of tables that Weir has written, after its commits: ``Weir/writtenTables``.
///
/// Who reads it slowly gets the tables of several commits together.
public struct WrittenTables: AsyncSequence, Sendable {
    /// The names of tables.
    public typealias Element = Set<String>

    fileprivate let tables: Protected<Set<String>>
    fileprivate let signals: AsyncStream<Void>

    /// What a loop reads.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let tables: Protected<Set<String>>
        fileprivate var signals: AsyncStream<Void>.Iterator

        /// Waits for a commit; `nil` once the Weir is closed.
        public mutating func next() async -> Set<String>? {
            while await signals.next() != nil {
                let taken = tables.withLock { tables in
                    defer { tables = [] }
                    return tables
                }
                if !taken.isEmpty { return taken }
            }
            return nil
        }
    }

    /// Begins to read; once for a sequence.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(tables: tables, signals: signals.makeAsyncIterator())
    }
}

extension Weir {
    /// The tables that Weir's own connection writes, after each of its commits from this call on: for libraries whose observations see writes of their
    /// own connections alone, such as GRDB with `notifyChanges(in:)`.
    ///
    /// Among them are the app's tables, with those that the app's triggers and foreign keys write then, and the tables of Weir's that the
    /// views `weir_<table>_state` read. What a session, a decision, ``write(foreignKeys:_:)`` and ``detach(_:discardingUnsent:)`` write is
    /// all of it; what other connections and processes write is not. A table may be named whose rows have not changed.
    ///
    /// Each sequence is for one task. It ends with ``close()``.
    public nonisolated var writtenTables: WrittenTables { writes.sequence() }
}

/// Observers of the tables that are written; each has a set of those that it has not taken.
final class TableBroadcast: Sendable {
    private struct Observer {
        let tables: Protected<Set<String>>
        let signals: AsyncStream<Void>.Continuation
    }

    private let observers = Protected(Observers<Observer>())
    private let sent = Protected(0)

    /// How many commits have written such tables.
    var count: Int { sent.withLock { $0 } }

    /// No view shows what is in them, and one of them has the lease, which is renewed while nothing changes.
    private static let hidden: Set<String> = ["weir_meta", "weir_applying"]

    func send(_ tables: Set<String>) {
        let shown = tables.subtracting(Self.hidden)
        if shown.isEmpty { return }
        sent.withLock { $0 += 1 }
        for observer in observers.withLock({ $0.all }) {
            observer.tables.withLock { $0.formUnion(shown) }
            observer.signals.yield()
        }
    }

    func sequence() -> WrittenTables {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let observer = Observer(tables: Protected([]), signals: continuation)
        if let number = observers.withLock({ $0.add(observer) }) {
            continuation.onTermination = { [weak self] _ in _ = self?.observers.withLock { $0.remove(number) } }
        } else {
            continuation.finish()
        }
        return WrittenTables(tables: observer.tables, signals: signals)
    }

    /// Ends all sequences.
    func finish() {
        for observer in observers.withLock({ $0.finish() }) { observer.signals.finish() }
    }
}
