import DeviceModel
import SyncModel

/// Compares the rows of drained devices with those of Postgres.
enum CopyJudge {
    /// - Parameter tables: by owner, all rows, deleted ones included.
    static func judge(
        _ copy: DeviceCopy, of name: String, owners: [SyncID], tables: [SyncID: [OrderedRow]], _ schema: Schema
    ) -> [Finding] {
        owners.compactMap { owner in
            let rows = tables[owner] ?? []
            let head = rows.map(\.timeStamp.rawValue).max() ?? 0
            guard copy.head(of: owner) == head else {
                return Finding(
                    kind: .copy,
                    text: "\(name), drained, is at \(copy.head(of: owner)) of \(owner), and Postgres at \(head)")
            }
            return copy.difference(from: owner, rows, schema).map {
                Finding(kind: .copy, text: "\(name), drained at \(head) of \(owner), differs from Postgres: \($0)")
            }
        }
    }
}
