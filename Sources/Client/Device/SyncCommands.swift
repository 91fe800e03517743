import Commands
import Foundation
import LocalTables
import WeirClient

/// `status`, `sync` and `watch`.
enum SyncCommands {
    static let commands = [
        Command(
            "status", "Print what is pending, what the server has not stored and why.", DeviceProgram.Action(status),
            options: [
                CommandOption(
                    "forget", .none, "Forget what the server has not stored, after it was printed; new rows stay.")
            ] + DeviceOptions.all),
        Command(
            "sync", "Send what is pending and receive what is new; ends with 1 if something was not stored.",
            DeviceProgram.Action(sync), options: DeviceOptions.all),
        Command(
            "watch", "Sync until SIGINT or SIGTERM, and print each row that changes.", DeviceProgram.Action(watch),
            options: DeviceOptions.all),
    ]

    private static func status(_ invocation: Invocation) async throws -> ExitCode {
        try await DeviceFile.with(invocation) { file, options in
            let report = try await StatusReport(file)
            try options.isJSON ? Printed.json(report.json) : report.write()
            if invocation.option("forget") != nil, let last = report.kept.last {
                try await file.weir.removeKeptEdits(through: last.number)
            }
            return .success
        }
    }

    private static func sync(_ invocation: Invocation) async throws -> ExitCode {
        try await DeviceFile.with(invocation, isOnline: true) { file, options in
            let waiting = Task {
                for await status in file.weir.status where status.phase == .waiting {
                    return Output.complain("Another process syncs \(file.path); waiting for it.")
                }
            }
            defer { waiting.cancel() }
            do {
                try await file.attach()
                try await file.weir.sync()
            } catch let error as SyncError {
                let count = try await file.pending().count
                throw DeviceFailure("not synced: \(error); \(Printed.rows(count)) pending")
            }
            let report = try await StatusReport(file)
            try options.isJSON ? Printed.json(report.json) : report.write()
            return report.isClean ? .success : .failure
        }
    }

    private static func watch(_ invocation: Invocation) async throws -> ExitCode {
        try await DeviceFile.with(invocation, isOnline: true) { file, options in
            try await file.attach()
            let watching = Task {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for table in file.tables.tables {
                        group.addTask { try await show(table, of: file.weir, options) }
                    }
                    if !options.isJSON { group.addTask { await showStatus(of: file.weir) } }
                    try await file.weir.start()
                    while try await group.next() != nil {}
                }
            }
            let signals = Signals { watching.cancel() }
            defer { signals.cancel() }
            do { try await watching.value } catch is CancellationError {}
            await file.weir.stop()
            return .success
        }
    }

    /// Prints the rows of a table that have changed.
    private static func show(_ table: LocalTables.Table, of weir: Weir, _ options: DeviceOptions) async throws {
        var known: [String: ObservedRow]?
        for try await rows in weir.observe("SELECT * FROM \(quoted(table.name))") {
            let found = Dictionary(rows.map { ($0["id"]?.string ?? "", $0) }) { $1 }
            let ids = Set(found.keys).union((known ?? [:]).keys).sorted()
            for id in ids where found[id] != known?[id] { try show(id, found[id], of: table, options) }
            known = found
        }
    }

    private static func show(
        _ id: String, _ row: ObservedRow?, of table: LocalTables.Table, _ options: DeviceOptions
    ) throws {
        if options.isJSON {
            try Printed.json(
                ["table": table.name, "id": id, "row": row.map { table.json($0) } ?? NSNull()] as [String: Any])
        } else if let row {
            let values = zip(row.columns, row.values).dropFirst()
                .map { "\($0)=\(ColumnText.text($1, table.type(of: $0)))" }
            Printed.line("\(table.name) \(id): \(values.joined(separator: " "))")
        } else {
            Printed.line("\(table.name) \(id): deleted")
        }
    }

    /// Prints how syncing goes, on standard error.
    private static func showStatus(of weir: Weir) async {
        var last = ""
        for await status in weir.status {
            var line = status.isComplete ? "in sync" : "syncing for the first time"
            if status.pendingRows > 0 { line = "\(Printed.rows(status.pendingRows)) pending" }
            if let error = status.lastError {
                line = "not synced: \(error); \(Printed.rows(status.pendingRows)) pending"
            }
            if line != last { Output.complain(line) }
            last = line
        }
    }
}

/// What a device is at.
struct StatusReport {
    let file: String
    let server: String
    let account: String
    let pending: [(table: String, key: String)]
    let kept: [KeptEdit]
    let parked: [ParkedRow]
    let attention: [String]

    init(_ device: DeviceFile) async throws {
        file = device.path
        let login = try await device.account
        server = login?.server ?? "none yet"
        account = login?.name ?? "none yet"
        pending = try await device.pending()
        kept = try await device.weir.keptEdits()
        parked = try await device.weir.parkedRows()
        attention = device.weir.currentStatus.needsAttention.compactMap(\.sentence).sorted()
    }

    /// Whether the server has everything, and the device as well.
    var isClean: Bool { pending.isEmpty && kept.isEmpty && parked.isEmpty }

    var json: [String: Any] {
        [
            "file": file, "server": server, "account": account,
            "pending": pending.map { ["table": $0.table, "id": $0.key] },
            "notStored": kept.map {
                [
                    "table": $0.table, "id": $0.key.string ?? $0.key.description, "code": $0.code,
                    "message": $0.message, "at": $0.at,
                ]
            },
            "notWritten": parked.map { ["table": $0.table, "id": $0.id, "reason": $0.reason] },
            "attention": attention,
        ]
    }

    func write() {
        Output.write("\(file): account \(account) at \(server)")
        Output.write(pending.isEmpty ? "Nothing is pending." : "Pending:")
        for row in pending { Printed.line("  \(row.table) \(row.key)") }
        if !kept.isEmpty {
            Output.write("Not stored by the server (weir-device status --forget removes these lines, but of new rows):")
        }
        for edit in kept {
            let reason = [edit.code, edit.message].filter { !$0.isEmpty }.joined(separator: ": ")
            Printed.line("  \(edit.table) \(edit.key.string ?? edit.key.description): \(reason)")
            Printed.line("    \(edit.change.count > 200 ? edit.change.prefix(200) + "…" : edit.change)")
        }
        if !parked.isEmpty { Output.write("Received, and not possible in this file:") }
        for row in parked { Printed.line("  \(row.table) \(row.id): \(row.reason)") }
        for line in attention { Printed.line(line) }
    }
}

extension SyncStatus.Attention {
    /// What the lists of a report do not say already.
    fileprivate var sentence: String? {
        switch self {
        case .logIn: "The server accepts neither the token nor a new one."
        case .forbidden(let code): "The server does not let this account or device sync (\(code ?? "no code"))."
        case .otherAccount: "The token is of another account than the file."
        case .rejected(let code): "The server does not accept the requests of this program (\(code ?? "no code"))."
        case .unsendableRows(let count):
            "\(count) rows cannot be sent as they are: a value is none of its column's type."
        case .unknownTables(let names): "The server has no tables \(names.sorted().joined(separator: ", "))."
        case .unknownColumns(let columns):
            "The server has no columns "
                + columns.flatMap { table, names in names.map { "\(table).\($0)" } }.sorted().joined(separator: ", ")
                + "."
        case .keptEdits, .parkedRows: nil
        }
    }
}

/// SIGINT and SIGTERM, which end a command in order.
private final class Signals {
    private let sources: [any DispatchSourceSignal]

    init(_ handler: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler(handler: handler)
            source.resume()
            return source
        }
    }

    func cancel() { for source in sources { source.cancel() } }
}
