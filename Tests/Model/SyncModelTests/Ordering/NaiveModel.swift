import SyncModel

/// An independent implementation of the rules, which keeps every version of every row.
struct NaiveModel {
    struct Version: Equatable {
        var timeStamp: Int64
        var device: Device
        var batch: Int64?
        var isDeleted: Bool
        var values: [String: String]
        var updatedAt: Int64
        var logTime: Int64
        /// Whether the change wrote every column of its schema version, and every column that another device may have written.
        var writesAll: Bool
        var isFull: Bool
        /// Whether a value was altered.
        var isAltered: Bool
        /// Whether the change did not send the row's `updatedAt`, under lastWriteWins; before version 4 the row is then not exact.
        var isClamped: Bool
        /// Whether the change was a delete.
        var isDelete: Bool
        var rules: Int

        var isExact: Bool {
            if rules > 3, isDeleted { return isDelete }
            return writesAll && !isAltered && (!isClamped || rules > 3)
        }
    }

    struct Answer: Equatable {
        var index: Int
        var name: String
        var timeStamp: Int64?
        var version: Int64?
        var maker: String?
        var heldFrom: Int64?
    }

    enum Verdict: Equatable {
        case dropped
        case ordered([Answer])
        case repeated([Answer])
        case refused(String)
    }

    private(set) var versions: [RowKey: [Version]] = [:]
    private(set) var makers: [RowKey: String] = [:]
    private(set) var newest: Int64 = 0
    private var deliveries: [(partition: Int, offset: Int64, part: Int)] = []
    private var outcomes: [DeviceKey: [(batch: Int64, hash: [UInt8], answers: [Answer])]] = [:]
    private var named: Set<Int> = []
    /// The content and the answer of each change with an id that was applied.
    private var applied: [AppliedChangeKey: (content: ShortDigest, answer: Answer)] = [:]

    /// The newest schema version so far.
    var reached: Schema { Fixture.history.entries[(named.max() ?? 1) - 1].schema }

    mutating func order(_ part: ChangePart) -> Verdict {
        let upload = part.upload
        let isAbove = deliveries.filter { $0.partition == upload.partition }.allSatisfy {
            upload.offset > $0.offset || upload.offset == $0.offset && part.part > $0.part
        }
        guard isAbove else { return .dropped }
        deliveries.append((upload.partition, upload.offset, part.part))
        named.insert(Int(part.schema.dropFirst()) ?? 0)
        if part.hasOtherEpoch { return .refused("history_changed") }
        let earlier = outcomes[part.deviceKey] ?? []
        if let batch = part.batch, earlier.contains(where: { $0.batch >= batch }) {
            guard let first = earlier.suffix(16).first(where: { $0.batch == batch }) else {
                return .refused("outcome_expired")
            }
            return first.hash == part.contentHash ? .repeated(first.answers) : .refused("batch_mismatch")
        }
        let before = self
        // For each change whether it wrote all columns, and whether the device's row differs.
        var events: [RowKey: [(isFull: Bool, isAltered: Bool)]] = [:]
        var wrote: [(position: Int, key: RowKey)] = []
        var answers: [Answer] = []
        var sizes: [RowKey: Int] = [:]
        // Positions of changes that an earlier part applied, and rows of repeated changes.
        var known: Set<Int> = []
        var repeated: Set<RowKey> = []
        for change in part.changes {
            let key = RowKey(table: change.table, owner: part.owner, id: change.id)
            if sizes[key] == nil {
                if part.rules > 1, sizes.values.reduce(0, +) >= part.maxBatchRowBytes {
                    answers.append(Answer(index: change.index, name: "batch_rows_too_large"))
                    continue
                }
                sizes[key] = size(before.versions[key]?.last?.values ?? [:], key)
            }
            let id = part.rules > 2 ? change.identity.map { AppliedChangeKey(device: part.deviceKey, id: $0.id) } : nil
            if let id, let first = applied[id] {
                if first.content == change.identity?.content {
                    if before.applied[id] != nil { known.insert(answers.count) }
                    repeated.insert(key)
                    var answer = first.answer
                    answer.index = change.index
                    answers.append(answer)
                } else {
                    answers.append(Answer(index: change.index, name: "change_mismatch"))
                }
                continue
            }
            let isOvertaken = part.changes.dropFirst(answers.count + 1).contains { later in
                guard later.table == change.table, later.id == change.id, let identity = later.identity else {
                    return false
                }
                let first = before.applied[AppliedChangeKey(device: part.deviceKey, id: identity.id)]
                return first?.content == identity.content
            }
            if part.rules > 6, id != nil, isOvertaken {
                answers.append(Answer(index: change.index, name: "conflict"))
                continue
            }
            let count = versions[key]?.count ?? 0
            let unchanged = self
            answers.append(judge(change, part))
            if part.rules > 2, exceedsQuota(part, since: unchanged) {
                (versions, makers, newest) = (unchanged.versions, unchanged.makers, unchanged.newest)
                answers[answers.count - 1] = Answer(index: change.index, name: "quota_exceeded")
            }
            if let id, let identity = change.identity, let answer = answers.last,
                ["applied", "deleted"].contains(answer.name)
            {
                applied[id] = (identity.content, answer)
            }
            if let made = versions[key], made.count > count, let last = made.last {
                events[key, default: []].append((last.isFull, last.isAltered || last.isClamped))
                wrote.append((answers.count - 1, key))
            } else if answers.last?.name == "applied", change.values.json.contains(where: { $0 != "" }) {
                // The device has the values of its delete, but no stored version does.
                events[key, default: []].append((false, true))
                if count > before.versions[key]?.count ?? 0 { versions[key]?[count - 1].isAltered = true }
            }
        }
        let isBad = part.hasIngestRefusal || answers.contains { !["applied", "deleted"].contains($0.name) }
        if part.isAtomic && isBad {
            (versions, makers, newest, applied) = (before.versions, before.makers, before.newest, before.applied)
            answers = answers.enumerated().map { position, answer in
                ["applied", "deleted"].contains(answer.name) && !known.contains(position)
                    ? Answer(index: answer.index, name: "batch_aborted") : answer
            }
        } else {
            for key in repeated {
                let count = versions[key]?.count ?? 0
                if count > before.versions[key]?.count ?? 0 { versions[key]?[count - 1].isAltered = true }
            }
            for (position, key) in wrote {
                answers[position].heldFrom =
                    repeated.contains(key)
                    ? nil
                    : heldFrom(
                        events[key] ?? [], isFull: versions[key]?.last?.isFull == true,
                        before: before.versions[key]?.last?.timeStamp ?? 0)
            }
        }
        if let batch = part.batch {
            outcomes[part.deviceKey, default: []].append((batch, part.contentHash, answers))
        }
        return .ordered(answers)
    }

    /// What an owner has: the sum of its rows.
    func usage(of owner: SyncID) -> OwnerUsage {
        var usage = OwnerUsage()
        for (key, all) in versions where key.owner == owner {
            guard let last = all.last else { continue }
            let bytes: Int64 = reached.tables[key.table].columns.reduce(0) { sum, column in
                let value = last.values[column.name] ?? Self.initial(column)
                return sum + (value == Self.initial(column) ? 0 : Int64(value.utf8.count))
            }
            if last.isDeleted {
                usage.deletedRows += 1
                usage.deletedBytes += bytes
            } else {
                usage.rows += 1
                usage.bytes += bytes
            }
        }
        return usage
    }

    /// Whether the newest change made something grow beyond the part's quota.
    private func exceedsQuota(_ part: ChangePart, since before: NaiveModel) -> Bool {
        let (old, new) = (before.usage(of: part.owner), usage(of: part.owner))
        func exceeds(_ amount: (OwnerUsage) -> Int64, _ limit: Int) -> Bool {
            limit > 0 && amount(new) > amount(old) && amount(new) > Int64(limit)
        }
        return exceeds({ $0.rows }, part.maxOwnerRows) || exceeds({ $0.bytes }, part.maxOwnerBytes)
            || exceeds({ $0.rows + $0.deletedRows }, 10 * part.maxOwnerRows)
            || exceeds({ $0.bytes + $0.deletedBytes }, 10 * part.maxOwnerBytes)
    }

    /// The stored row that results from the versions.
    func row(_ key: RowKey) -> OrderedRow? {
        guard let all = versions[key], let first = all.first, let last = all.last, let maker = makers[key] else {
            return nil
        }
        return OrderedRow(
            key: key, knowledgeID: KnowledgeID(unchecked: maker), timeStamp: TimeStamp(last.timeStamp),
            version: Int64(all.count), isDeleted: last.isDeleted, createdAt: first.logTime, updatedAt: last.updatedAt,
            writer: last.device, writerBatch: last.batch, isExact: last.isExact,
            othersTimeStamp: TimeStamp(all.last { $0.device != last.device }?.timeStamp ?? 0),
            values: RowValues(
                json: reached.tables[key.table].columns.map { last.values[$0.name] ?? Self.initial($0) }))
    }

    private mutating func judge(_ change: Change, _ part: ChangePart) -> Answer {
        let key = RowKey(table: change.table, owner: part.owner, id: change.id)
        let all = versions[key] ?? []
        let base = change.base.rawValue
        let table = Fixture.history[part.schema]?.schema.tables[change.table] ?? reached.tables[change.table]
        func answer(_ name: String) -> Answer { Answer(index: change.index, name: name) }
        guard let last = all.last else {
            if change.isDelete { return Answer(index: change.index, name: "applied", timeStamp: 0, version: 0) }
            if base > 0 { return answer("row_gone") }
            return create(change, key, part, table) ?? answer("missing_value")
        }
        let hasCondition = change.ifBase || table.policy == .checkBase
        let unseen = all.filter { $0.timeStamp > base }
        let isOpen = last.isDeleted && change.isForLiveRow && part.rules > 3
        if hasCondition, !isOpen, base > last.timeStamp || unseen.contains(where: { $0.device != part.device }) {
            return answer("conflict")
        }
        if change.ifUnchanged, part.rules > 3, base != last.timeStamp { return answer("conflict") }
        if last.isDeleted && change.isDelete {
            return Answer(
                index: change.index, name: "applied", timeStamp: last.timeStamp, version: Int64(all.count),
                maker: makers[key])
        }
        if last.isDeleted && (base == last.timeStamp || isOpen && last.device == part.device && last.isExact) {
            return create(change, key, part, table) ?? answer("missing_value")
        }
        if table.policy == .lastWriteWins, !last.isDeleted, !change.isDelete, last.device != part.device,
            min(change.updatedAt ?? .max, part.logTime) < last.updatedAt
        {
            return answer("conflict")
        }
        var values = last.values
        for (name, value) in sent(change, table) { values[name] = value }
        let grows = size(values, key) > size(last.values, key)
        if grows, size(values, key) > part.maxRowBytes { return answer("row_too_large") }
        return write(change, key, part, table, values, isDeleted: last.isDeleted || change.isDelete, isAltered: false)
    }

    private mutating func create(_ change: Change, _ key: RowKey, _ part: ChangePart, _ table: Table) -> Answer? {
        let sent = sent(change, table)
        let absent = table.columns.filter { sent[$0.name] == nil }
        if absent.contains(where: \.isRequired) { return nil }
        if size(sent, key) > part.maxRowBytes { return Answer(index: change.index, name: "row_too_large") }
        let isRevival = versions[key] != nil
        if !isRevival { makers[key] = change.knowledgeID.text }
        let isAltered = isRevival && !absent.isEmpty || absent.contains { $0.defaultValue != nil }
        return write(change, key, part, table, sent, isCreation: true, isDeleted: false, isAltered: isAltered)
    }

    private mutating func write(
        _ change: Change, _ key: RowKey, _ part: ChangePart, _ table: Table, _ values: [String: String],
        isCreation: Bool = false, isDeleted: Bool, isAltered: Bool
    ) -> Answer {
        newest = max(newest + 1, part.logTime)
        var updatedAt = part.logTime
        if table.policy == .lastWriteWins {
            let told = min(change.updatedAt ?? part.logTime, part.logTime)
            updatedAt = ((versions[key] ?? []).last.map { [$0.updatedAt, told] } ?? [told]).max() ?? told
        }
        let replaced = isCreation || part.rules < 5 ? table : reached.tables[change.table]
        let isClamped = table.policy == .lastWriteWins && updatedAt != change.updatedAt
        versions[key, default: []].append(
            Version(
                timeStamp: newest, device: part.device, batch: part.batch, isDeleted: isDeleted, values: values,
                updatedAt: updatedAt, logTime: part.logTime,
                writesAll: sent(change, table).count == table.columns.count,
                isFull: sent(change, table).count == replaced.columns.count,
                isAltered: isAltered || change.isAltered, isClamped: isClamped, isDelete: change.isDelete,
                rules: part.rules))
        return Answer(
            index: change.index, name: isDeleted && !change.isDelete ? "deleted" : "applied", timeStamp: newest,
            version: Int64(versions[key]?.count ?? 0), maker: makers[key])
    }

    /// I6 for everything that one part did to a row; `isFull` refers to its last version.
    private func heldFrom(_ events: [(isFull: Bool, isAltered: Bool)], isFull: Bool, before: Int64) -> Int64? {
        let sinceFull = events.lastIndex(where: \.isFull).map { events[$0...] } ?? events[...]
        if sinceFull.contains(where: \.isAltered) { return nil }
        return isFull ? 0 : before
    }

    private func size(_ values: [String: String], _ key: RowKey) -> Int {
        reached.tables[key.table].columns.reduce(0) { $0 + (values[$1.name] ?? Self.initial($1)).utf8.count }
    }

    private func sent(_ change: Change, _ table: Table) -> [String: String] {
        var sent: [String: String] = [:]
        for (column, json) in zip(table.columns, change.values.json) where json != "" { sent[column.name] = json }
        return sent
    }

    static func initial(_ column: Column) -> String {
        column.defaultValue.map { String(decoding: $0, as: UTF8.self) } ?? "null"
    }
}
