import Seeded

/// Random statements of an app on three tables, with keys and values so few that they meet all the time.
struct RandomSQL {
    /// The check keeps rows from referencing each other in a circle, where none can be first.
    static let schema = """
        CREATE TABLE note (id TEXT PRIMARY KEY, a INT, b TEXT COLLATE NOCASE UNIQUE, any);
        CREATE TABLE list (id INTEGER PRIMARY KEY, a INT, b TEXT);
        CREATE TABLE item (
            id TEXT PRIMARY KEY COLLATE NOCASE,
            list INTEGER REFERENCES list ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED,
            a INT, UNIQUE (list, a)) WITHOUT ROWID;
        CREATE TABLE node (id TEXT PRIMARY KEY, up TEXT REFERENCES node ON DELETE SET NULL, CHECK (up < id));
        """
    static let server = [
        "note": ["a": "integer", "b": "text", "any": "json"], "list": ["a": "integer", "b": "text"],
        "item": ["list": "text", "a": "integer"], "node": ["up": "text"],
    ]
    static let tables = ["note", "list", "item", "node"]
    static let references = ["item": ["list": "list"], "node": ["up": "node"]]
    /// Created after Weir's, so that SQLite fires them first.
    static let triggers = """
        CREATE TRIGGER touch AFTER UPDATE OF a ON list BEGIN UPDATE list SET b = 't' || NEW.a WHERE id = NEW.id; END;
        CREATE TRIGGER twice AFTER UPDATE OF a ON note WHEN NEW.a = 3
        BEGIN UPDATE note SET a = 2, b = NULL WHERE id = NEW.id; END;
        CREATE TRIGGER undelete AFTER DELETE ON note WHEN OLD.a = 1
        BEGIN INSERT INTO note VALUES (OLD.id, 4, OLD.b, NULL); UPDATE note SET a = 0 WHERE id = OLD.id; END;
        CREATE TRIGGER counted AFTER INSERT ON item WHEN NEW.list IS NOT NULL
        BEGIN UPDATE list SET b = coalesce(b, '') || 'i' WHERE id = NEW.list; END;
        CREATE TRIGGER keep BEFORE DELETE ON list WHEN OLD.a = 4 BEGIN SELECT RAISE(IGNORE); END;
        """

    var random: SeededRandom
    /// Whether keys are changed, which puts rows before their parents for a while.
    let changesKeys: Bool

    mutating func statement() -> String {
        let table = pick(Self.tables)
        return switch Int.random(in: 0..<100, using: &random) {
        case ..<25: "INSERT\(conflict()) INTO \(table) VALUES (\(key(table)), \(values(table)))"
        case ..<35: "REPLACE INTO \(table) VALUES (\(key(table)), \(values(table)))"
        case ..<45:
            "INSERT INTO \(table) VALUES (\(key(table)), \(values(table))) ON CONFLICT (id) DO UPDATE SET \(set(table))"
        case ..<65: "UPDATE\(conflict()) \(table) SET \(set(table)) WHERE \(condition(table))"
        case ..<70: "UPDATE\(conflict()) \(table) SET \(set(table))"
        case ..<85: "DELETE FROM \(table) WHERE \(condition(table))"
        case ..<87: "DELETE FROM \(table)"
        case ..<94:
            changesKeys
                ? "UPDATE\(conflict()) \(table) SET id = \(key(table))\(random.chance(50) ? ", " + set(table) : "") "
                    + "WHERE \(condition(table))"
                : "UPDATE \(table) SET \(set(table)), \(set(table)) WHERE \(condition(table))"
        case ..<97: "PRAGMA recursive_triggers = \(random.chance(50))"
        default: "PRAGMA foreign_keys = \(random.chance(90))"
        }
    }

    private mutating func conflict() -> String {
        pick(["", "", " OR REPLACE", " OR IGNORE", " OR FAIL", " OR ROLLBACK"])
    }

    private mutating func condition(_ table: String) -> String {
        random.chance(80)
            ? "id = \(key(table))"
            : pick(["1", "id > \(key(table))", "rowid_free IS NULL"])
                .replacing("rowid_free IS NULL", with: table == "node" ? "up IS NULL" : "a IS NOT 2")
    }

    private mutating func key(_ table: String) -> String {
        table == "list" ? pick(["1", "2", "3", "-1", "NULL"]) : pick(["'a'", "'A'", "'b'", "'B'", "'c'", "'d'"])
    }

    private mutating func values(_ table: String) -> String {
        switch table {
        case "note": "\(number()), \(text()), \(anything())"
        case "list": "\(number()), \(text())"
        case "item": "\(pick(["1", "2", "3", "NULL"])), \(number())"
        default: pick(["'a'", "'b'", "'c'", "NULL"])
        }
    }

    private mutating func set(_ table: String) -> String {
        switch (table, Int.random(in: 0..<3, using: &random)) {
        case ("node", _): "up = \(values(table))"
        case ("item", 0): "list = \(pick(["1", "2", "3", "NULL"]))"
        case ("note", 0): "any = \(anything())"
        case ("note", 1), ("list", 1): "b = \(text())"
        case (_, 2) where table != "item": "a = \(number()), b = \(text())"
        default: "a = \(number())"
        }
    }

    private mutating func number() -> String { pick(["0", "1", "2", "3", "4", "NULL"]) }
    private mutating func text() -> String { pick(["'x'", "'X'", "'y'", "'z'", "NULL"]) }
    private mutating func anything() -> String { pick(["1", "1.0", "'1'", "2.5", "x'31'", "'[1]'", "NULL"]) }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &random)]
    }
}
