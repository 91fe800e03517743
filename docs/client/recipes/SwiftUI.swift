import SwiftUI
import WeirClient

@main struct ItemsApp: App {
    @State private var sync = Sync(Login())
    @Environment(\.scenePhase) private var scenePhase

    var body: some Scene {
        WindowGroup {
            ItemList(sync: sync).task { await sync.run() }
        }
        .onChange(of: scenePhase) { _, phase in
            Task { await sync.follow(phase) }
        }
    }
}

/// How the app knows its user; a library for logging in keeps the tokens.
struct Login: Sendable {
    let account = "ada"

    /// A valid token, another one after the server has rejected the last.
    func token() async throws -> String { "…" }
}

/// What the views show, kept up to date by Weir.
@MainActor @Observable final class Sync {
    private(set) var items: [ObservedRow] = []
    private(set) var status: SyncStatus?
    private(set) var failure: String?
    private var weir: Weir?
    private let login: Login

    init(_ login: Login) { self.login = login }

    /// Opens the database, which the app's migrations have made, and observes it until the view's task ends.
    func run() async {
        do {
            let folder = try FileManager.default.url(
                for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
            let file = folder.appending(path: "items.sqlite")
            let weir = try await Weir.open(file, tables: ["item"])
            self.weir = weir
            let marker = folder.appending(path: "installation")
            let attaching = Task { await attach(weir, marker) }
            let statuses = Task { for await status in weir.status { self.status = status } }
            defer {
                attaching.cancel()
                statuses.cancel()
            }
            let query = """
                SELECT id, title, (SELECT state FROM weir_item_state AS s WHERE s.id = item.id) AS state
                FROM item ORDER BY title
                """
            for try await rows in weir.observe(query) { items = rows }
        } catch {
            failure = "\(error)"
        }
    }

    /// Attaches the file and begins to sync.
    ///
    /// Only the first time does this need the server; until it is reached, the app works with the rows of the file. The app may be suspended
    /// meanwhile, or have the file locked.
    ///
    /// - Parameter marker: a file that backups leave out, so that a database which comes from one becomes another device.
    private func attach(_ weir: Weir, _ marker: URL) async {
        var options = SyncOptions()
        options.installMarker = marker
        let (login, server) = (login, URL(string: "https://sync.example.com")!)
        while !Task.isCancelled {
            do {
                try await weir.attach(login.account, server: server, options: options) { try await login.token() }
                failure = nil
                return try await weir.start()
            } catch {
                failure = "\(error)"
                if case WeirError.otherAccount = error { return }
            }
            // It ends early where the task is cancelled.
            try? await Task.sleep(for: .seconds(10))
        }
    }

    func add(_ title: String) async {
        do {
            _ = try await weir?.write { connection in
                let id = UUID().uuidString.lowercased()
                try connection.execute("INSERT INTO item (id, title) VALUES (?1, ?2)", [.text(id), .text(title)])
            }
        } catch {
            failure = "\(error)"
        }
    }

    /// iOS ends a suspended app that has a lock on a file of an app group.
    func follow(_ phase: ScenePhase) async {
        do {
            switch phase {
            case .active: try await weir?.resume()
            case .background: await weir?.suspend()
            default: break
            }
        } catch {
            failure = "\(error)"
        }
    }
}

struct ItemList: View {
    let sync: Sync
    @State private var title = ""

    var body: some View {
        VStack {
            if let fraction = sync.status?.firstSync, fraction < 1 { ProgressView(value: fraction) }
            List(sync.items, id: \.["id"]) { item in
                HStack {
                    Text(item["title"]?.string ?? "")
                    if item["state"]?.string == "pending" { Text("not sent yet") }
                }
            }
            TextField("New item", text: $title).onSubmit {
                let added = title
                title = ""
                Task { await sync.add(added) }
            }
            if let failure = sync.failure { Text(failure) }
        }
    }
}
