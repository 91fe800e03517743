import FanOutLink
import Gateway
import HTTP
import JSON
import JSONText
import SyncModel

/// `DELETE /api/{table}/{id}`: deletes a row, and makes its children reference another one.
///
/// Children, parent and the row that they go to are changed in one atomic batch, whose conditions are that each is as it was read.
/// Where one is not, they are read again.
struct CrudDelete: Sendable {
    /// How often a delete is tried while others write the same rows.
    static let maximumAttempts = 8
    /// The most children that one batch reassigns.
    private static let maximumChildren = 10_000
    static let prefix = "reassign_"

    let table: FaceTable
    let rows: CrudRows
    let references: CrudReferences
    let request: FaceRequest

    init(_ table: FaceTable, _ session: any FaceSession, _ request: FaceRequest) {
        self.table = table
        self.request = request
        rows = CrudRows(session)
        references = CrudReferences(of: table, rows)
    }

    /// The most children of one batch; the parent and the rows that they go to are besides.
    var limit: Int { min(Self.maximumChildren, rows.session.limits.outcome.maxChanges) }

    /// The rows that children go to, by the name of their column.
    typealias Targets = [String: RowID]

    /// - Parameter id: `nil` for one that no row can have.
    func respond(_ id: RowID?) async throws -> HTTPResponse {
        let targets = try targets()
        guard let id else { return Self.done }
        if targets.values.contains(id) {
            throw Problem(.invalidRequest, "children cannot go to the record that is deleted")
        }
        if references.isEmpty {
            try await deleteAlone(id)
            return Self.done
        }
        var leastHead = try await rows.written(isFresh: true)
        for _ in 0..<Self.maximumAttempts {
            switch try await attempt(id, targets, leastHead) {
            case .done: return Self.done
            case .repeated:
                if !targets.isEmpty { try await reassignOthers(id, targets, since: nil, leastHead) }
                return Self.done
            case .reassigned(let seen, let head):
                try await reassignOthers(id, targets, since: seen, head)
                return Self.done
            case .changed(let head): leastHead = max(leastHead, head)
            case .tooLarge: throw tooLarge
            }
        }
        throw Self.busy
    }

    var tooLarge: Problem {
        Problem(
            .invalidRequest,
            "the record's children, and what they go to, are together larger than can be changed at once: \(wayOut)")
    }

    /// What a client can do where all children cannot be reassigned at once.
    private var wayOut: String {
        "change \(references.names.sorted().joined(separator: " or ")) of some of them with PUT first"
    }

    static var busy: Problem {
        Problem(.notReady, "others are writing these records: send the request again")
    }

    private static let done = HTTPResponse(status: 204, headers: [HTTPField("Cache-Control", "no-store")])

    enum Attempt {
        case done
        /// The record was deleted before, or never there.
        case repeated
        /// Children that were written above `seen` may have been missed.
        case reassigned(seen: TimeStamp, head: TimeStamp)
        /// Nothing was stored: a row is not as it was read, but newer.
        case changed(head: TimeStamp)
        /// Nothing was stored: the changes, or the rows that they change, are too large together.
        ///
        /// - Parameter fitting: so many of the changes are not.
        case tooLarge(fitting: Int)
    }

    /// - Returns: the head of a stream that has it.
    @discardableResult
    private func deleteAlone(_ id: RowID) async throws -> TimeStamp {
        var batch = FaceBatch()
        addDelete(of: id, unchangedAt: nil, to: &batch)
        let outcome = try await rows.submit(batch)
        if case .refused(let code, let message) = outcome.results.first?.status {
            throw Problem(FaceRefusal(code, message))
        }
        return outcome.head
    }

    private func attempt(_ id: RowID, _ targets: Targets, _ leastHead: TimeStamp) async throws -> Attempt {
        let parent = try await rows.row(table.index, id, leastHead: leastHead)
        if parent?.isDeleted == true { return .repeated }
        var batch = FaceBatch(isAtomic: true)
        guard let parent else {
            // Unless somebody makes it meanwhile.
            addDelete(of: id, unchangedAt: .zero, to: &batch)
            let attempt = try await submit(batch, seen: nil)
            // A child may be there all the same: it came before its parent, which was never sent.
            if case .done = attempt { return .repeated }
            return attempt
        }
        let found = try await references.find(id, since: nil, limit: limit, leastHead: leastHead)
        try check(found, targets)
        let rowsOfTargets = try await read(targets, above: id, leastHead)
        if found.total == 0 {
            if targets.isEmpty { return try await deleteWithoutChildren(id, parent) }
            return .reassigned(seen: found.head, head: try await deleteAlone(id))
        }
        guard found.total <= limit else {
            throw Problem(
                .invalidRequest,
                "the record has \(found.total) children, at most \(limit) can be reassigned at once: \(wayOut)")
        }
        try add(found.rows, targets, rowsOfTargets, to: &batch)
        addDelete(of: id, unchangedAt: parent.timeStamp, to: &batch)
        return try await submit(batch, seen: found.head)
    }

    /// Deletes a row without children.
    ///
    /// The stream that was asked may be behind one that has answered for a child. So the row is written first, as it is: a stream that
    /// has this has what was there before.
    private func deleteWithoutChildren(_ id: RowID, _ parent: FaceRow) async throws -> Attempt {
        var batch = FaceBatch()
        addUnchanged(id, parent, to: &batch)
        let outcome = try await rows.submit(batch)
        switch outcome.results.first?.status {
        case .applied(let timeStamp, _):
            try check(try await references.find(id, since: nil, limit: limit, leastHead: outcome.head), [:])
            var deletion = FaceBatch()
            addDelete(of: id, unchangedAt: timeStamp, to: &deletion)
            return try await submit(deletion, seen: nil)
        case .refused(let code, let message): throw Problem(FaceRefusal(code, message))
        case .conflict, .deleted, nil: return .changed(head: outcome.head)
        }
    }

    /// Every column by which there are children must have a target.
    private func check(_ found: CrudReferences.Found, _ targets: Targets) throws(Problem) {
        let homeless = found.counts.filter { targets[references.name($0.table, $0.column)] == nil }
        guard let first = homeless.first else { return }
        let name = Self.prefix + references.name(first.table, first.column)
        var problem = Problem(.hasChildren, "records name this one (\(found.total)): say where they go with \(name)")
        var writer = JSONWriter(capacity: 128)
        writer.array { writer in
            for count in found.counts {
                writer.object { writer in
                    writer.member("table", references.table(count.table).name)
                    writer.member("column", references.name(count.table, count.column))
                    writer.member("count", count.rows)
                }
            }
        }
        problem.members.append(("children", writer.take()))
        throw problem
    }

    /// The rows that children go to, which must be there.
    func read(_ targets: Targets, above id: RowID, _ leastHead: TimeStamp) async throws -> [RowID: FaceRow] {
        var found: [RowID: FaceRow] = [:]
        for (name, target) in targets where found[target] == nil {
            guard let row = try await rows.row(table.index, target, leastHead: leastHead), !row.isDeleted else {
                let message = "\(Self.prefix + name) is the id of no record of \(table.table.name)"
                throw Problem(FaceRefusal(.invalidValue, message))
            }
            if try await references.isBelow(row, id, leastHead: leastHead) {
                let message = "\(Self.prefix + name) is below the record that is deleted"
                throw Problem(FaceRefusal(.invalidValue, message))
            }
            found[target] = row
        }
        return found
    }

    /// Adds what makes children reference other rows, on the condition that all are as they were read.
    func add(
        _ children: some Sequence<CrudReferences.Row>, _ targets: Targets, _ rowsOfTargets: [RowID: FaceRow],
        to batch: inout FaceBatch
    ) throws(Problem) {
        for child in children {
            let childTable = references.table(child.table)
            var values: [FaceValue?] = Array(repeating: nil, count: childTable.columns.count)
            for column in child.columns {
                let name = references.name(child.table, column)
                guard let target = targets[name], let value = references.value(target, child.table, column) else {
                    let message = "\(Self.prefix + name) is no value of \(childTable.name).\(name)"
                    throw Problem(FaceRefusal(.invalidValue, message))
                }
                values[column] = value
            }
            batch.add { writer in
                writer.member("table", childTable.name)
                writer.member("id", child.id.text)
                writer.member("base", child.timeStamp.rawValue)
                writer.member("ifUnchanged", true)
                writer.values(values, of: childTable)
            }
        }
        for (id, row) in rowsOfTargets.sorted(by: { $0.key < $1.key }) { addUnchanged(id, row, to: &batch) }
    }

    /// A new version with the same values: only a change can have a condition.
    private func addUnchanged(_ id: RowID, _ row: FaceRow, to batch: inout FaceBatch) {
        batch.add(isLimited: false) { writer in
            writer.member("table", table.table.name)
            writer.member("id", id.text)
            writer.member("base", row.timeStamp.rawValue)
            writer.member("ifUnchanged", true)
            if let updatedAt = row.updatedAt { writer.member("updatedAt", updatedAt) }
            writer.values([], of: table.table)
        }
    }

    /// - Parameter timeStamp: where the row must be at; zero for none, `nil` for any.
    private func addDelete(of id: RowID, unchangedAt timeStamp: TimeStamp?, to batch: inout FaceBatch) {
        batch.add(isLimited: false) { writer in
            writer.member("table", table.table.name)
            writer.member("id", id.text)
            writer.member("deleted", true)
            guard let timeStamp else { return }
            writer.member("base", timeStamp.rawValue)
            writer.member("ifUnchanged", true)
        }
    }

    /// - Parameter seen: up to where children were looked for.
    func submit(_ batch: FaceBatch, seen: TimeStamp?) async throws -> Attempt {
        let outcome: FaceOutcome
        do {
            outcome = try await rows.submit(batch)
        } catch let problem as Problem where problem.code == .batchTooLarge {
            return .tooLarge(fitting: batch.count / 2)
        }
        var isChanged = false
        for (index, result) in outcome.results.enumerated() {
            switch result.status {
            case .applied, .deleted, .refused(.batchAborted, _): continue
            case .conflict: isChanged = true
            // The rows of the changes before this one have reached the limit.
            case .refused(.batchRowsTooLarge, _): return .tooLarge(fitting: index / 2)
            case .refused(let code, let message): throw Problem(FaceRefusal(code, message))
            }
        }
        if isChanged { return .changed(head: outcome.head) }
        return seen.map { .reassigned(seen: $0, head: outcome.head) } ?? .done
    }
}
