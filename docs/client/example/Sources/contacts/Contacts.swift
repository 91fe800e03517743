import Foundation
import WeirClient

/// An address book on several devices: each has a file of its own and works without a network.
@main struct Contacts {
    static let usage = """
        contacts FILE add NAME [EMAIL]
        contacts FILE rename ID NAME
        contacts FILE remove ID
        contacts FILE list
        contacts FILE sync      sends and receives once
        contacts FILE watch     syncs from now on and shows each change, until it is interrupted

        The server is CONTACTS_SERVER (http://127.0.0.1:7777), the account CONTACTS_ACCOUNT (ada).
        """

    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 2 else {
            print(usage)
            exit(64)
        }
        do {
            try await use(URL(fileURLWithPath: arguments[0]), arguments[1], Array(arguments.dropFirst(2)))
        } catch {
            FileHandle.standardError.write(Data("contacts: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func use(_ file: URL, _ command: String, _ words: [String]) async throws {
        try AppDatabase.create(file)
        // From here on all writes to the table are captured, of whichever connection.
        let weir = try await Weir.open(file, tables: ["person"])
        try await run(command, words, weir, file)
        await weir.close()
    }

    private static func run(_ command: String, _ words: [String], _ weir: Weir, _ file: URL) async throws {
        switch (command, words.count) {
        case ("add", 1), ("add", 2):
            let id = UUID().uuidString.lowercased()
            try await weir.write { db in
                try db.execute(
                    "INSERT INTO person (id, name, email) VALUES (?1, ?2, ?3)",
                    [.text(id), .text(words[0]), words.count == 2 ? .text(words[1]) : .null])
            }
            print(id)
        case ("rename", 2):
            let saved = try await weir.write { db in
                try db.execute("UPDATE person SET name = ?2 WHERE id = ?1", [.text(words[0]), .text(words[1])])
            }
            if saved.value == 0 { print("there is no contact \(words[0])") }
        case ("remove", 1):
            try await weir.write { try $0.execute("DELETE FROM person WHERE id = ?1", [.text(words[0])]) }
        case ("list", 0): try await list(weir)
        case ("sync", 0):
            try await attach(weir, file)
            try await weir.sync()
            try await list(weir)
        case ("watch", 0):
            try await attach(weir, file)
            try await weir.start()
            for try await rows in weir.observe(query) { show(rows) }
        default:
            print(usage)
            exit(64)
        }
    }

    /// Which account of which server the file belongs to; only the first time does it need the server.
    private static func attach(_ weir: Weir, _ file: URL) async throws {
        let environment = ProcessInfo.processInfo.environment
        guard let server = URL(string: environment["CONTACTS_SERVER"] ?? "http://127.0.0.1:7777") else {
            throw URLError(.badURL)
        }
        var options = SyncOptions()
        // A copy of the file, or one from a backup, is another device.
        options.installMarker = URL(fileURLWithPath: file.path + "-install")
        // With tokens: attach(account, server: server) { try await auth.token() }
        try await weir.attach(environment["CONTACTS_ACCOUNT"] ?? "ada", server: server, options: options)
    }

    private static let query = """
        SELECT id, name, email, (SELECT state FROM weir_person_state AS s WHERE s.id = person.id) AS state
        FROM person ORDER BY name
        """

    private static func list(_ weir: Weir) async throws {
        show(try await weir.write { try $0.query(query) }.value)
        for edit in try await weir.keptEdits() { print("not stored: \(edit.table) \(edit.key): \(edit.code)") }
    }

    private static func show(_ rows: [ObservedRow]) {
        print("\(rows.count) contacts")
        for row in rows {
            let columns = ["id", "name", "email", "state"].map { row[$0]?.string ?? "-" }
            print(columns.joined(separator: "  "))
        }
    }
}
