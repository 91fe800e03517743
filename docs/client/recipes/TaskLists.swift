import Foundation
import WeirClient

/// How the app knows its user; a library for logging in keeps the tokens.
protocol Authentication: Sendable {
    /// A valid token, another one after the server has rejected the last.
    func token() async throws -> String
}

/// What an app calls of Weir, beside its own SQL.
struct TaskLists {
    let weir: Weir

    /// Opens the database, which the app's migrations have made, and syncs from then on.
    static func open(
        _ file: URL, account: String, serverURL: URL, auth: some Authentication, marker: URL
    ) async throws -> TaskLists {
        let weir = try await Weir.open(file, tables: ["list", "item"])
        var options = SyncOptions()
        options.installMarker = marker
        try await weir.attach(account, server: serverURL, options: options) { try await auth.token() }
        try await weir.start()
        try await weir.firstSync()
        return TaskLists(weir: weir)
    }

    /// Returns when the server has decided.
    ///
    /// - Parameter show: is called with what the user has to know.
    func complete(_ id: String, show: (RowOutcome) -> Void) async throws {
        let saved = try await weir.write { try $0.execute("UPDATE item SET done = 1 WHERE id = ?1", [.text(id)]) }
        for outcome in try await saved.outcome where outcome.status != .applied { show(outcome) }
    }

    /// Lets Weir decide about conflicts of items, at each start: of columns that one side alone has changed it takes both.
    func mergeConflicts() async throws {
        try await weir.setResolver(.mergeColumns, for: "item")
    }

    /// Carries out what the user has decided about a change that was not stored.
    func decide(_ edit: KeptEdit, keep: Bool) async throws {
        try await weir.resolve(edit, keep ? .keepLocal : .acceptServer)
    }

    /// Shows what has become of the changes whose outcome was asked for, also before this start of the app.
    ///
    /// - Parameter place: of the last outcome that was shown.
    func follow(after place: Int64, show: ([RowOutcome]) -> Void) async throws {
        for try await outcomes in weir.outcomeUpdates(after: place) { show(outcomes) }
    }
}
