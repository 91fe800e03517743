import Postgres

/// How far the tables in Postgres are, as the database itself says.
struct TablePositions: Sendable {
    let space: ClusterSpace

    /// Between two questions.
    private static let interval: Int64 = 2_000_000
    /// Ten minutes.
    private static let limit: Int64 = 600_000_000_000

    /// When the tables were seen to have so many messages of `changes`.
    struct Moment: Sendable {
        let messages: Int
        let nanoseconds: Int64
    }

    /// Waits until the tables have at least so many messages of all partitions of `changes`.
    func wait(for messages: Int) async throws -> Moment {
        try await LoadThreads.run { [self] in
            try space.cluster.session { session in
                let end = SystemCall.nanoseconds() + Self.limit
                while true {
                    let found = try look(session)
                    let now = SystemCall.nanoseconds()
                    if found >= messages { return Moment(messages: found, nanoseconds: now) }
                    guard now < end else {
                        throw BenchmarkFailure("the tables have \(found) of \(messages) messages after ten minutes")
                    }
                    SystemCall.wait(until: now + Self.interval)
                }
            }
        }
    }

    /// How many rows the tables have.
    func rows() async throws -> Int {
        try await LoadThreads.run { [self] in
            try space.cluster.session { session in
                Int(try session.queryOnce("SELECT count(*) FROM \(space.name).note").bigint(0, 0))
            }
        }
    }

    /// Where the tables are not made yet.
    private static let undefinedTable = SQLState("42P01")

    private func look(_ session: PostgresConnection) throws -> Int {
        do throws(PostgresError) {
            let rows = try session.queryOnce(
                "SELECT coalesce(sum(next_offset), 0)::bigint FROM \(space.name).weir_partitions")
            return Int(try rows.bigint(0, 0))
        } catch {
            guard error.sqlState == Self.undefinedTable else { throw error }
            return 0
        }
    }
}
