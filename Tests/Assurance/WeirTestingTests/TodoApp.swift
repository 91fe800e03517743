import WeirClient
import WeirTesting

/// A to-do app as its team has it: tables of its own, which are not spelled as the server's.
enum TodoApp {
    static let schema = """
        tables:
          list:
            columns:
              title: { type: text, nullable: false, length: 20 }
          todo:
            columns:
              list: { type: text, references: list }
              title: { type: text, nullable: false }
              done: { type: boolean, nullable: false, default: false }
              due: timestamp
              price: decimal(6,2)
        """

    static let app = SyncKit.App(
        createTables: """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL);
            CREATE TABLE todo (id TEXT PRIMARY KEY NOT NULL, list TEXT REFERENCES list, title TEXT NOT NULL,
                done INTEGER NOT NULL DEFAULT 0, due TEXT, price REAL);
            """, tables: ["list", "todo"])

    /// An edit that a user may make, which follows from random numbers.
    static func edit(_ number: Int, _ random: inout TestRandom) -> String {
        let id = "t\(Int.random(in: 0..<6, using: &random))"
        return switch Int.random(in: 0..<5, using: &random) {
        case 0: "INSERT OR IGNORE INTO todo (id, title) VALUES ('\(id)', 'new \(number)')"
        case 1: "UPDATE todo SET title = 'title \(number)' WHERE id = '\(id)'"
        case 2: "UPDATE todo SET done = NOT done, price = \(number).5 WHERE id = '\(id)'"
        case 3: "UPDATE todo SET due = '2026-01-02 03:04:\(10 + number % 50)' WHERE id = '\(id)'"
        default: "DELETE FROM todo WHERE id = '\(id)'"
        }
    }
}
