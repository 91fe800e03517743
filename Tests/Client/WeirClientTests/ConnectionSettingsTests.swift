import CWeirSQLite
import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Weir's connection where SQLite was compiled with other defaults.
@Suite struct ConnectionSettingsTests {
    /// The files whose connections begin with other settings than those of SQLite's defaults.
    private static let files = Mutex<Set<String>>([])
    private static let isRegistered: Bool = {
        // SQLite calls it for each new connection, with other parameters than its type says.
        let entry: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32 = {
            database, _, _ in
            guard let name = sqlite3_db_filename(database, "main"),
                ConnectionSettingsTests.files.withLock({ $0.contains(String(cString: name)) })
            else { return SQLITE_OK }
            return sqlite3_exec(database, "PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON", nil, nil, nil)
        }
        return sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self)) == SQLITE_OK
    }()

    @Test func theServersRowsAreWrittenWithoutForeignKeysAndWithoutRecursionOfTriggers() throws {
        let app = try SyncedApp(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE item (id TEXT PRIMARY KEY, list TEXT REFERENCES list ON DELETE CASCADE);
            INSERT INTO list VALUES ('l', 'L'); INSERT INTO item VALUES ('i', 'l');
            CREATE TRIGGER touch AFTER UPDATE ON list BEGIN UPDATE list SET name = name || '!' WHERE id = NEW.id; END;
            """, server: ["list": ["name": "text"], "item": ["list": "text"]])
        try #require(Self.isRegistered)
        // SQLite names a file by its real path.
        let real = URL(fileURLWithPath: app.path).resolvingSymlinksInPath().path
        Self.files.withLock { _ = $0.insert(real) }
        let file = try app.open("list", "item")
        try file.applying { try $0.run("UPDATE list SET name = 'M'") }
        #expect(try app.query("SELECT name FROM list") == ["'M!'"])
        try file.applying { try $0.run("DELETE FROM list") }
        #expect(try app.query("SELECT id FROM item") == ["'i'"])
    }
}
