import LoadTools
import Postgres

/// The tables' position in `changes`, read from Postgres.
struct TablePositions: Sendable {
    let space: ClusterSpace

    /// Nanoseconds between two queries.
    private static let interval: Int64 = 2_000_000
    /// Ten minutes.
    private static let limit: Int64 = 600_000_000_000

    /// When the tables were seen to have `records` records of `changes`.
    struct Moment: Sendable {
        let records: Int
        let nanoseconds: Int64
    }

    /// Waits until the tables have at least `records` records of all partitions of `changes`.
    func wait(for records: Int) async throws -> Moment {
        try await LoadThreads.run { [self] in
            try space.cluster.session { session in
                let end = SystemCall.nanoseconds() + Self.limit
                while true {
                    let found = try read(session)
                    let now = SystemCall.nanoseconds()
                    if found >= records { return Moment(records: found, nanoseconds: now) }
                    guard now < end else {
                        throw LoadFailure(
                            "the tables have \(found) of \(records) records of changes after ten minutes")
                    }
                    SystemCall.wait(until: now + Self.interval)
                }
            }
        }
    }

    /// The number of rows in the tables.
    func rows() async throws -> Int {
        try await LoadThreads.run { [self] in
            try space.cluster.session { session in
                Int(try session.queryOnce("SELECT count(*) FROM \(space.name).note").bigint(0, 0))
            }
        }
    }

    /// SQLSTATE undefined_table: the tables are not created yet.
    private static let undefinedTable = SQLState("42P01")

    private func read(_ session: PostgresConnection) throws -> Int {
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
