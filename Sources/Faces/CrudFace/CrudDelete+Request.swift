import Gateway
import HTTP
import JSON
import SyncModel

/// What a request to delete says of where children go.
extension CrudDelete {
    /// What the query and the body say of where children go.
    func targets() throws(Problem) -> Targets {
        var targets: Targets = [:]
        for item in request.http.query where item.name.utf8.starts(with: Self.prefix.utf8) {
            guard let value = try request.query(item.name), let id = RowID(value) else {
                throw Problem(.invalidRequest, "\(item.name) must be an id: 1 to 255 bytes without NUL")
            }
            targets[try column(item.name)] = id
        }
        guard request.http.body.count > 0 else { return targets }
        let named = try rows.session.parse(request.http.body) { root throws(Problem) in
            do throws(FaceRefusal) {
                return try Self.named(root)
            } catch {
                throw Problem(error)
            }
        }
        for (name, id) in named {
            let column = try column(name)
            if let other = targets.updateValue(id, forKey: column), other != id {
                throw Problem(.invalidRequest, "the query and the body have another \(name)")
            }
        }
        return targets
    }

    private static func named(_ root: borrowing JSONValue) throws(FaceRefusal) -> [(name: String, id: RowID)] {
        guard var members = root.members, root.repeatedMember == nil else {
            throw FaceRefusal(.invalidChange, "the body is an object with each name once")
        }
        var named: [(name: String, id: RowID)] = []
        while let member = members.next() {
            let name = member.name.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
            if !member.value.isNull { named.append((name, try RowID(member.value, named: prefix + "…"))) }
        }
        return named
    }

    private func column(_ name: String) throws(Problem) -> String {
        let column = String(name.dropFirst(Self.prefix.count))
        guard name.utf8.starts(with: Self.prefix.utf8), references.names.contains(column) else {
            let message =
                "\(name.prefix(64)): no column of this name references \(table.table.name) with onDelete: reassign"
            throw Problem(FaceRefusal(.unknownColumn, message))
        }
        return column
    }
}
