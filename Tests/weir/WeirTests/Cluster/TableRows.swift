import Testing

extension WeirCluster {
    /// Expects the table in Postgres to have exactly the rows that a drained device holds; the workers have stopped.
    func expectRows(_ device: TestDevice) async throws {
        let table = try await database.query(
            """
            SELECT sync_id, id, knowledge_id, time_stamp::text, version::text, deleted::text, name, email
            FROM person
            """)
        let held = device.rows.values.map { row -> [String?] in
            [
                row["syncId"].string, row["id"].string, row["knowledgeId"].string,
                row["timeStamp"].int.map(String.init), row["version"].int.map(String.init),
                row["deleted"].bool == true ? "true" : "false", row["values"]["name"].string,
                row["values"]["email"].string,
            ]
        }
        #expect(Self.sorted(table) == Self.sorted(held))
    }

    /// In the order of owner and id, whatever the database's order of texts is.
    private static func sorted(_ rows: [[String?]]) -> [[String?]] {
        rows.sorted { ($0[0] ?? "", $0[1] ?? "") < ($1[0] ?? "", $1[1] ?? "") }
    }

    /// Expects the tables to have passed every part of `changes`; the workers have stopped.
    func expectPositions(_ audit: LogAudit) async throws {
        let positions = try await database.query("SELECT partition::text, next_offset::text FROM weir_partitions")
        for position in positions {
            guard let partition = position[0].flatMap({ Int($0) }), let next = position[1].flatMap({ Int64($0) }) else {
                Issue.record("a position is no number: \(position)")
                continue
            }
            #expect(next >= audit.orderedUpTo[partition], "partition \(partition)")
        }
    }
}
