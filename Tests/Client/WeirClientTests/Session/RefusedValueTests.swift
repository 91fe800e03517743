import Synchronization
import Testing
import WeirClient

/// Values of the server for which an expression of the app's table fails, which is no constraint: the row waits, and others come.
@Suite struct RefusedValueTests {
    /// `note` is JSON to each of them.
    static let schemas = [
        "CREATE INDEX i ON item (json_extract(note, '$.a'))",
        "CREATE TRIGGER t BEFORE INSERT ON item BEGIN SELECT json_extract(NEW.note, '$.a'); END",
        """
        CREATE TABLE part (value);
        CREATE TRIGGER t AFTER INSERT ON item BEGIN INSERT INTO part SELECT value FROM json_each(NEW.note); END;
        CREATE TRIGGER u AFTER UPDATE ON item BEGIN INSERT INTO part SELECT value FROM json_each(NEW.note); END
        """,
        // A datatype mismatch.
        """
        CREATE TABLE size (id INTEGER PRIMARY KEY);
        CREATE TRIGGER t AFTER INSERT ON item WHEN NEW.note = '' BEGIN INSERT INTO size VALUES (NEW.note); END
        """,
    ]
    static let tables = [
        """
        CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT,
            a GENERATED ALWAYS AS (json_extract(note, '$.a')) STORED)
        """,
        "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT CHECK (json_extract(note, '$.a') IS NULL))",
    ]

    private func expect(
        _ device: Device, _ rows: [String], parked: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(try device.rows() == rows, sourceLocation: sourceLocation)
        let found = try await device.weir.parkedRows()
        #expect(found.map(\.id) == parked, sourceLocation: sourceLocation)
        for row in found {
            #expect(
                row.reason.contains("malformed JSON") || row.reason.contains("datatype mismatch"),
                sourceLocation: sourceLocation)
        }
        #expect(try await device.weir.pendingRows() == 0, sourceLocation: sourceLocation)
    }

    @Test(arguments: schemas.map { "\(Device.schema); \($0)" } + tables)
    func aNewRowWaitsUntilItsValueIsAnother(sql: String) async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.requestsLeft = 50 }
        let device = try await Device(sql)
        try await device.attach(server)
        server.write("item", "a", ["title": "A", "note": "{}"])
        server.write("item", "b", ["title": "B", "note": ""])
        server.write("item", "c", ["title": "C", "note": "{}"])
        for _ in 1...2 {
            try await device.weir.sync()
            try await expect(device, ["a A {}", "c C {}"], parked: ["b"])
        }
        server.write("item", "b", ["note": "[]"])
        try await device.weir.sync()
        try await expect(device, ["a A {}", "b B []", "c C {}"], parked: [])
    }

    @Test(arguments: [schemas[0], schemas[2]].map { "\(Device.schema); \($0)" } + tables)
    func aNewVersionWaitsUntilItsValueIsAnother(sql: String) async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.requestsLeft = 50 }
        let device = try await Device(sql)
        try await device.attach(server)
        for id in ["a", "b"] { server.write("item", id, ["title": id, "note": "{}"]) }
        try await device.weir.sync()
        server.write("item", "a", ["title": "A2"])
        server.write("item", "b", ["title": "B2", "note": ""])
        for _ in 1...2 {
            try await device.weir.sync()
            // Nothing of the version is written.
            try await expect(device, ["a A2 {}", "b b {}"], parked: ["b"])
        }
        server.write("item", "b", ["note": "[]"])
        try await device.weir.sync()
        try await expect(device, ["a A2 {}", "b B2 []"], parked: [])
    }

    @Test func theRemovalOfARowForWhichATriggerFailsHoldsUpNothing() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { ($0.links, $0.requestsLeft) = (["xyz"], 50) }
        let device = try await Device()
        try await device.attach(server)
        for (id, owner) in [("a", nil), ("b", nil), ("c", "xyz"), ("d", "xyz")] as [(String, String?)] {
            server.write("item", id, ["title": id, "note": ""], owner: owner)
        }
        try await device.weir.sync()
        try device.run(
            """
            CREATE TRIGGER t BEFORE DELETE ON item WHEN OLD.id IN ('a', 'c') BEGIN SELECT json_extract(OLD.note, '$.a'); END
            """)
        for id in ["a", "b"] { server.write("item", id, nil) }
        server.state.withLock { $0.links = [] }
        try await device.weir.sync()
        #expect(try device.rows() == ["a a ", "c c "])
        #expect(try await device.weir.parkedRows().map(\.id) == ["a"])
        #expect(try await device.weir.pendingRows() == 0)
    }
}
