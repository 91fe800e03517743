import Foundation
import WeirClient

/// What a device pulls.
extension ContractServer.State {
    func pull(_ body: [String: Any]) -> [String: Any] {
        var answer: [String: Any] = [
            "syncId": syncID, "epoch": epoch, "schemaVersion": schemaVersion,
            "owners": ([syncID] + links).map { owner in
                ["syncId": owner, "access": owner == syncID ? "write" : linkAccess.rawValue]
            }, "revoked": [String](), "resync": [Any](),
            "changes": [Any](), "knowledge": [Any](), "hasMore": false,
        ]
        let sent = body["knowledge"] as? [[String: Any]] ?? []
        var vector: [[String]: Int64] = [:]
        var revoked: Set<String> = []
        for entry in sent {
            let owner = entry["syncId"] as? String ?? ""
            if owner != syncID, !links.contains(owner) { revoked.insert(owner) }
            vector[[owner, entry["knowledgeId"] as? String ?? ""]] = (entry["lastTimeStamp"] as? NSNumber)?.int64Value
        }
        answer["revoked"] = Array(revoked)
        vector = vector.filter { !revoked.contains($0.key[0]) }
        if let epoch = body["epoch"] as? String, epoch != self.epoch {
            let named = Set(vector.keys.map { $0[0] }).union([syncID])
            answer["resync"] = named.map { ["syncId": $0, "reason": "history_changed"] }
            return answer
        }
        let limit = min(pageRows, (body["limit"] as? NSNumber)?.intValue ?? 1000)
        let (page, passed, hasMore) = page(after: vector, limit)
        for row in passed {
            let pair = [row.owner ?? syncID, row.creator]
            vector[pair] = max(row.timeStamp, vector[pair] ?? 0)
        }
        if body["compact"] as? Bool == true, !hasMore {
            vector = Dictionary(uniqueKeysWithValues: Set(vector.keys.map { $0[0] }).map { ([$0, "*"], timeStamp) })
        }
        answer["changes"] = page.map { json($0) }
        answer["knowledge"] = vector.map {
            ["syncId": $0[0], "knowledgeId": $0[1], "lastTimeStamp": $1] as [String: Any]
        }
        if hasMore {
            answer["hasMore"] = true
            answer["cutFrom"] = [["syncId": syncID, "head": timeStamp]]
        }
        return answer
    }

    /// The next rows, one owner after the other, in the order of their timeStamps.
    ///
    /// Those that the device has written with the same request, whole or on a version that its vector covers, are passed and left out.
    private func page(
        after vector: [[String]: Int64], _ limit: Int
    ) -> (rows: [ContractServer.Row], passed: [ContractServer.Row], hasMore: Bool) {
        var (page, passed): ([ContractServer.Row], [ContractServer.Row]) = ([], [])
        let granted = streams.keys.filter { $0.owner.map(links.contains) ?? true }
        for owner in Set(granted.map(\.owner)).sorted(by: { $0 ?? "" < $1 ?? "" }) {
            var rest = granted.filter { $0.owner == owner }.map { stream -> ArraySlice<ContractServer.Version> in
                let name = owner ?? syncID
                let last = vector[[name, stream.creator]] ?? vector[[name, "*"]] ?? 0
                let versions = streams[stream] ?? []
                return versions[Self.first(in: versions, after: last)...]
            }
            while let next = rest.indices.filter({ !rest[$0].isEmpty })
                .min(by: { rest[$0][rest[$0].startIndex].timeStamp < rest[$1][rest[$1].startIndex].timeStamp })
            {
                let version = rest[next].removeFirst()
                guard let row = rows[version.key], row.timeStamp == version.timeStamp else { continue }
                if page.count == limit { return (page, passed, true) }
                passed.append(row)
                let known = vector[[owner ?? syncID, row.creator]] ?? vector[[owner ?? syncID, "*"]] ?? 0
                if let from = heldFrom[row.timeStamp], known >= from { continue }
                page.append(row)
            }
        }
        return (page, passed, false)
    }

    private static func first(in versions: [ContractServer.Version], after timeStamp: Int64) -> Int {
        var (low, high) = (0, versions.count)
        while low < high {
            let middle = (low + high) / 2
            if versions[middle].timeStamp > timeStamp { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// The row as it is shown: with every column of the schema, but for those that were added with a default since it was written.
    func json(_ row: ContractServer.Row) -> [String: Any] {
        let unset = (tables[row.table] ?? [:]).filter { defaults[$0.key] == nil }.mapValues { _ in NSNull() as Any }
        return [
            "table": row.table, "id": row.id, "syncId": row.owner ?? syncID, "knowledgeId": row.creator,
            "timeStamp": row.timeStamp, "version": row.version, "deleted": row.isDeleted,
            "values": unset.merging(row.values) { $1 },
            "writer": ["syncId": syncID, "knowledgeId": row.writer],
        ]
    }
}

extension TransportRequest {
    /// Whether it asks for what is above a vector and not for everything; a request without one is about something else.
    var continuesFromAVector: Bool {
        let text = String(decoding: body, as: UTF8.self)
        return !text.contains(#""knowledge":[]"#) && !text.contains(#""lastTimeStamp":0"#)
    }
}
