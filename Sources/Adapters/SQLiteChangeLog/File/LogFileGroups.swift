import ChangeLog
import LocalLog
import SQLite

/// The groups and their offsets, read and written inside the writer's transactions.
struct LogFileGroups {
    let connection: Connection

    /// - Returns: the result; a failure of this request alone.
    /// - Throws: what fails the transaction.
    func handle(_ action: LogRequest.Action) throws -> Result<Int64?, ChangeLogError> {
        switch action {
        case .register(let group): try register(group)
        case .load(let group, let partition): return .success(try offset(of: group, partition))
        case .store(let group, let partition, let offset, let isCurrent):
            // Checked here and not before: the partition's next worker loads the offset behind this request.
            guard isCurrent() else { return .failure(.fenced(TopicPartition(group.topic, partition))) }
            try store(offset, of: group, partition)
        case .remove: preconditionFailure("the writer handles removals in transactions of their own")
        }
        return .success(nil)
    }

    private func register(_ group: GroupName) throws {
        var insert = try connection.statement("INSERT OR IGNORE INTO weir_groups (name, topic) VALUES (?1, ?2)")
        try insert.bind(text: group.utf8.span.bytes, at: 1)
        try insert.bind(text: group.topic.rawValue, at: 2)
        try insert.run()
    }

    func offset(of group: GroupName, _ partition: Int) throws -> Int64? {
        var select = try connection.statement(
            "SELECT next_offset FROM weir_offsets WHERE name = ?1 AND topic = ?2 AND partition = ?3")
        try select.bind(text: group.utf8.span.bytes, at: 1)
        try select.bind(text: group.topic.rawValue, at: 2)
        try select.bind(integer: Int64(partition), at: 3)
        return try select.step() ? try select.integer(at: 0) : nil
    }

    private func store(_ offset: Int64, of group: GroupName, _ partition: Int) throws {
        var upsert = try connection.statement(
            """
            INSERT INTO weir_offsets (name, topic, partition, next_offset) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (name, topic, partition) DO UPDATE SET next_offset = excluded.next_offset
            """)
        try upsert.bind(text: group.utf8.span.bytes, at: 1)
        try upsert.bind(text: group.topic.rawValue, at: 2)
        try upsert.bind(integer: Int64(partition), at: 3)
        try upsert.bind(integer: offset, at: 4)
        try upsert.run()
    }
}
