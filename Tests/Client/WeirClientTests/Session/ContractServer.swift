import Foundation
import Synchronization
import WeirClient

/// A server in memory that keeps the contract for one account and its linked owners: batches are applied once, pages are cut, conflicts are shown.
final class ContractServer: Transport {
    struct Row {
        var table: String
        var id: String
        var creator: String
        /// `nil`: the account.
        var owner: String?
        var timeStamp: Int64
        var version: Int
        var isDeleted: Bool
        var values: [String: Any]
        /// The device that has written the newest version.
        var writer = ""
        /// The timeStamp of the newest version that another device than the writer has written.
        var othersTimeStamp: Int64 = 0
        /// When the newest edit was made, under lastWriteWins.
        var updatedAt = ""

        /// Whether an edit of version `base` has seen every version by other devices.
        func isCurrent(_ base: Int64, for device: String) -> Bool {
            base <= timeStamp && (writer == device ? othersTimeStamp : timeStamp) <= base
        }
    }

    /// The rows of an owner that one device has made.
    struct Stream: Hashable {
        let owner: String?
        let creator: String
    }

    /// A row at one time; it may have been written again since.
    struct Version {
        let timeStamp: Int64
        let key: String
    }

    /// A batch that was applied, and its results.
    fileprivate struct Outcome {
        let content: Data
        let results: [[String: Any]]
    }

    /// JSON objects are values here, of strings, numbers and the like, which are never changed.
    struct State: @unchecked Sendable {
        var syncID = "abc"
        var epoch = "e1"
        var schemaVersion = "s1"
        /// Other owners whose rows the account may write.
        var links: [String] = []
        var linkAccess = Access.write
        var tables: [String: [String: String]]
        /// The defaults of columns, by their names in any table.
        var defaults: [String: Any] = [:]
        var policy = "lastSyncWins"
        fileprivate(set) var rows: [String: Row] = [:]
        fileprivate(set) var streams: [Stream: [Version]] = [:]
        var timeStamp: Int64 = 100
        var maxBatchBytes = 1 << 20
        /// The most rows of a page.
        var pageRows = 1000
        /// The most rows that are shown with conflicts.
        var shownRows = 100
        /// Changes with this text are refused.
        var refusedText: String?
        /// A refusal of the next batch as a whole.
        var refusal: String?
        fileprivate var outcomes: [String: [Int64: Outcome]] = [:]
        /// The texts that devices have written.
        fileprivate(set) var storedTexts: Set<String> = []
        /// Of the rows that the batch of this request has written, by their timeStamps: from which timeStamp on the device, if its vector
        /// covers it, has the rest of the row.
        fileprivate(set) var heldFrom: [Int64: Int64] = [:]
        /// Batches that were applied.
        var applied = 0
        /// Batches with an outcome, repeats too, and rows of pages.
        fileprivate(set) var exchanged = 0
        /// After so many requests nothing is answered.
        var requestsLeft = Int.max
    }

    let state: Mutex<State>
    private let received = Mutex<[TransportRequest]>([])

    init(_ tables: [String: [String: String]]) { state = Mutex(State(tables: tables)) }

    var requests: [TransportRequest] { received.withLock { $0 } }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        received.withLock { $0.append(request) }
        return try state.withLock { try $0.respond(request) }
    }

    func open(_ request: TransportRequest) async throws -> TransportStream {
        TransportStream(status: 503, pieces: AsyncThrowingStream { $0.finish() })
    }

    /// The rows that are not deleted, as `table id {values} version`.
    var live: [String] {
        state.withLock { state in
            state.rows.values.filter { !$0.isDeleted }
                .map { "\($0.table) \($0.id) \(State.text($0.values)) \($0.version)" }.sorted()
        }
    }

    /// A write of another device.
    @discardableResult
    func write(
        _ table: String, _ id: String, _ values: [String: String]?, device: String = "other", owner: String? = nil,
        updatedAt: String? = nil
    ) -> Int64 {
        state.withLock { state in
            let timeStamp = state.write(table, id, values, device: device, owner: owner)
            if let updatedAt { state.rows["\(table) \(id)"]?.updatedAt = updatedAt }
            return timeStamp
        }
    }
}

extension ContractServer.State {
    static func text(_ value: Any) -> String {
        do {
            return String(
                decoding: try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys]), as: UTF8.self)
        } catch {
            return "\(error)"
        }
    }

    @discardableResult
    mutating func write(
        _ table: String, _ id: String, _ values: [String: Any]?, device: String, owner: String? = nil
    ) -> Int64 {
        timeStamp += 1
        let key = "\(table) \(id)"
        var row =
            rows[key]
            ?? ContractServer.Row(
                table: table, id: id, creator: device, owner: owner, timeStamp: 0, version: 0, isDeleted: false,
                values: [:])
        if row.writer != device { (row.writer, row.othersTimeStamp) = (device, row.timeStamp) }
        row.timeStamp = timeStamp
        row.version += 1
        row.isDeleted = values == nil
        row.values.merge(values ?? [:]) { $1 }
        rows[key] = row
        append(row, key)
        return timeStamp
    }

    /// Makes a row a tombstone as it is.
    mutating func delete(_ table: String, _ id: String) { rows["\(table) \(id)"]?.isDeleted = true }

    private mutating func append(_ row: ContractServer.Row, _ key: String) {
        let stream = ContractServer.Stream(owner: row.owner, creator: row.creator)
        streams[stream, default: []].append(ContractServer.Version(timeStamp: row.timeStamp, key: key))
    }

    // MARK: Requests

    fileprivate mutating func respond(_ request: TransportRequest) throws -> TransportResponse {
        if requestsLeft == 0 { throw ScriptedTransport.Lost() }
        requestsLeft -= 1
        heldFrom = [:]
        switch (request.method, request.url.path) {
        case ("GET", "/v1/schema"): return .json(Self.text(schema))
        case ("POST", "/v1/pull"), ("POST", "/v1/sync"):
            guard let body = try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any],
                let device = body["knowledgeId"] as? String
            else { return .problem(422, "invalid_request") }
            if request.body.count > maxBatchBytes { return .problem(413, "batch_too_large") }
            var answer: [String: Any] = [:]
            if let number = body["batch"] as? NSNumber {
                answer["batch"] = try outcome(number.int64Value, body, device)
                exchanged += 1
            }
            let pulled = pull(body)
            exchanged += (pulled["changes"] as? [Any])?.count ?? 0
            answer.merge(pulled) { $1 }
            return .json(Self.text(answer))
        case ("GET", let path) where path.hasPrefix("/v1/batches/"):
            return rows(of: path, URLComponents(string: request.url.absoluteString)?.queryItems ?? [])
        default: return .problem(404, "not_found")
        }
    }

    private var schema: [String: Any] {
        let tables = tables.map { name, columns -> [String: Any] in
            [
                "name": name, "policy": policy, "rank": 0,
                "columns": columns.map { column, type in
                    ["name": column, "type": type, "nullable": true].merging(
                        defaults[column].map { ["default": $0] } ?? [:]
                    ) { $1 } as [String: Any]
                },
            ]
        }
        return [
            "epoch": epoch, "schemaVersion": schemaVersion, "tables": tables,
            "limits": [
                "maxBatchBytes": maxBatchBytes, "maxChanges": 1000, "maxLimit": 10_000, "keepAlive": 15,
            ],
        ]
    }

    /// Begins another run of history: rows get new timeStamps, and outcomes are forgotten.
    mutating func changeHistory(to epoch: String, losing lost: Set<String> = []) {
        self.epoch = epoch
        outcomes = [:]
        timeStamp = 10
        streams = [:]
        for key in rows.keys.sorted() {
            timeStamp += 1
            if lost.contains(key) { rows[key] = nil }
            // The versions before have no time in the new history.
            rows[key]?.timeStamp = timeStamp
            rows[key]?.othersTimeStamp = 0
            if let row = rows[key] { append(row, key) }
        }
    }

    // MARK: Batches

    /// The newest batches of a device, whose outcomes are kept.
    private static let keptOutcomes: Int64 = 16

    private mutating func outcome(_ number: Int64, _ body: [String: Any], _ device: String) throws -> [String: Any] {
        let changes = body["changes"] as? [[String: Any]] ?? []
        let content = try JSONSerialization.data(withJSONObject: changes, options: .sortedKeys)
        let known = outcomes[device, default: [:]]
        var code = refusal
        refusal = nil
        if let epoch = body["epoch"] as? String, epoch != self.epoch { code = "history_changed" }
        let newest = known.keys.max() ?? 0
        if code == nil, number > newest - Self.keptOutcomes, let first = known[number] {
            if first.content == content { return shown(first.results, number, from: 0) }
            code = "batch_mismatch"
        }
        if code == nil, number <= newest { code = "outcome_expired" }
        if let code { return ["batch": number, "refused": ["code": code, "message": code]] }
        applied += 1
        // Rows of an atomic batch, as they were.
        let before = body["atomic"] as? Bool == true ? self : nil
        var results = changes.map { apply($0, device) }
        let isStored = results.map { ["applied", "deleted"].contains($0["status"] as? String) }
        if let before, isStored.contains(false) {
            self = before
            for index in changes.indices where isStored[index] {
                let change = changes[index]
                results[index] = [
                    "status": "refused", "code": "batch_aborted", "message": "another change was not stored",
                    "key": "\(change["table"] ?? "") \(change["id"] ?? "")",
                ]
            }
        }
        outcomes[device, default: [:]][number] = ContractServer.Outcome(content: content, results: results)
        return shown(results, number, from: 0)
    }

    private mutating func apply(_ change: [String: Any], _ device: String) -> [String: Any] {
        guard let table = change["table"] as? String, let id = change["id"] as? String, let columns = tables[table]
        else { return ["status": "refused", "code": "unknown_table", "message": "no such table", "row": NSNull()] }
        let row = rows["\(table) \(id)"]
        // An id belongs to one owner here.
        let owner = change["syncId"] as? String
        guard row.map({ $0.owner == owner }) ?? true, owner.map({ links.contains($0) && linkAccess == .write }) ?? true
        else {
            return ["status": "refused", "code": "not_granted", "message": "not the owner", "row": NSNull()]
        }
        let base = (change["base"] as? NSNumber)?.int64Value ?? 0
        if let row, policy == "checkBase" || change["ifBase"] as? Bool == true, !row.isCurrent(base, for: device) {
            return ["status": "conflict", "key": "\(table) \(id)"]
        }
        let sent = change["values"] as? [String: Any] ?? [:]
        let values = Dictionary(uniqueKeysWithValues: sent.map { ($0, Self.canonical($1, columns[$0])) })
        if let unknown = values.keys.first(where: { columns[$0] == nil }) {
            return ["status": "refused", "code": "unknown_column", "message": unknown, "key": "\(table) \(id)"]
        }
        if let refusedText, values.values.contains(where: { $0 as? String == refusedText }) {
            return ["status": "refused", "code": "value_too_large", "message": "too large", "key": "\(table) \(id)"]
        }
        let updatedAt = policy == "lastWriteWins" ? change["updatedAt"] as? String ?? "" : ""
        if let row, row.writer != device, row.updatedAt > updatedAt {
            return ["status": "conflict", "key": "\(table) \(id)"]
        }
        let isDeletion = change["deleted"] as? Bool == true
        if isDeletion, row?.isDeleted ?? true {
            return [
                "status": "applied", "timeStamp": row?.timeStamp ?? 0, "version": row?.version ?? 0,
                "knowledgeId": row?.creator ?? "",
            ]
        }
        // A tombstone is revived by a change that names it, and by no other.
        let staysDeleted = row?.isDeleted == true && !isDeletion && base != row?.timeStamp
        let time = write(table, id, isDeletion ? nil : values, device: device, owner: owner)
        // What is not as the device has sent it comes with the pull.
        let isRevived = row?.isDeleted == true && !isDeletion && !staysDeleted
        let isFull = Set(values.keys) == Set(columns.keys)
        let isAltered = sent.contains { values[$0] as? String != $1 as? String }
        if !isAltered, !(isRevived && !isFull), (row?.updatedAt ?? "") <= updatedAt || policy != "lastWriteWins" {
            heldFrom[time] = isFull ? 0 : row?.timeStamp ?? 0
        }
        storedTexts.formUnion(values.values.compactMap { $0 as? String })
        if staysDeleted { rows["\(table) \(id)"]?.isDeleted = true }
        rows["\(table) \(id)"]?.updatedAt = max(row?.updatedAt ?? "", updatedAt)
        let new = rows["\(table) \(id)"]
        return [
            "status": staysDeleted ? "deleted" : "applied", "timeStamp": time, "version": new?.version ?? 0,
            "knowledgeId": new?.creator ?? "",
        ]
    }

    /// Times in UTC have six decimals, uuids lower-case letters; no other value is changed.
    private static func canonical(_ value: Any, _ type: String?) -> Any {
        if type == "uuid", let uuid = value as? String { return uuid.lowercased() }
        guard type == "timestamp", let time = value as? String, time.hasSuffix("Z") else { return value }
        let parts = time.dropLast().split(separator: ".")
        let decimals = parts.count > 1 ? String(parts[1]) : ""
        return "\(parts[0]).\(decimals)\(String(repeating: "0", count: max(0, 6 - decimals.count)))Z"
    }

    /// The results with the rows of conflicts, as many as are shown at once.
    private func shown(_ results: [[String: Any]], _ number: Int64, from first: Int) -> [String: Any] {
        var outcome: [String: Any] = ["batch": number]
        var count = 0
        var rows: [[String: Any]] = []
        var results = results
        for index in results.indices {
            guard let key = results[index].removeValue(forKey: "key") as? String, index >= first else { continue }
            if count == shownRows {
                outcome["rowsFrom"] = index
                break
            }
            count += 1
            let row: Any = self.rows[key].map { json($0) } ?? NSNull()
            results[index]["row"] = row
            rows.append(["result": index, "row": row])
        }
        for index in results.indices { results[index]["key"] = nil }
        outcome[first == 0 ? "results" : "rows"] = first == 0 ? results : rows
        return outcome
    }

    private func rows(of path: String, _ query: [URLQueryItem]) -> TransportResponse {
        let number = Int64(path.split(separator: "/").last ?? "") ?? 0
        let device = query.first { $0.name == "knowledgeId" }?.value ?? ""
        let first = query.first { $0.name == "rowsFrom" }.flatMap { Int($0.value ?? "") } ?? 0
        guard let known = outcomes[device]?[number] else { return .problem(404, "not_found") }
        return .json(Self.text(["batch": shown(known.results, number, from: first)]))
    }
}
