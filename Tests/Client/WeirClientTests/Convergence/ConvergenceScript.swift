import Seeded

/// What happens in one run of the property of convergence.
///
/// Every part of its steps is a script, too.
struct ConvergenceScript: Sendable {
    /// One device is meant by its number.
    enum Step: Sendable, CustomStringConvertible {
        case write(Int, String)
        /// By an app that has the columns and tables which the server gains, and only then.
        case writeNew(Int, String)
        case sync(Int)
        /// The user decides about all changes that were not stored.
        case resolve(Int, Decision)
        /// The app is started again.
        case restart(Int)
        /// The device is killed at so many statements after its start, while it syncs.
        case kill(Int, statement: Int)
        /// The server is restarted while it answers so many requests after the device has begun to sync: connections are cut, and for
        /// some time refused.
        case restartServer(Int, request: Int, isApplied: Bool)
        /// The server gains a column and a table.
        case upgradeServer
        /// The app is started in the version that has them, after its migration, if the server has them.
        case upgradeApp(Int)
        /// A write of another device, in rows of a linked owner.
        case other(owner: String, table: String, number: Int, value: String?)
        case link([String])
        /// The server has forgotten outcomes.
        case expireOutcome
        case changeHistory(to: String)

        var description: String {
            switch self {
            case .write(let device, let sql): "\(device) writes: \(sql)"
            case .writeNew(let device, let sql): "\(device) writes, if it is upgraded: \(sql)"
            case .sync(let device): "\(device) syncs"
            case .resolve(let device, let decision): "\(device) decides: \(decision)"
            case .restart(let device): "\(device) is started again"
            case .kill(let device, let statement): "\(device) syncs and is killed at statement \(statement)"
            case .restartServer(let device, let request, let isApplied):
                "\(device) syncs and the server is restarted at request \(request), which is \(isApplied ? "" : "not ")carried out"
            case .upgradeServer: "the server is upgraded"
            case .upgradeApp(let device): "\(device) is upgraded"
            case .other(let owner, let table, let number, let value):
                "\(owner) writes \(table) \(number): \(value ?? "deleted")"
            case .link(let owners): "the account is linked with \(owners)"
            case .expireOutcome: "outcomes expire"
            case .changeHistory(let epoch): "the history changes to \(epoch)"
            }
        }
    }

    enum Decision: CaseIterable, Sendable {
        case keepLocal
        case acceptServer
        case merge
        case remove
    }

    /// What a device's resolver of its tables does.
    enum Resolver: CaseIterable, Sendable {
        case none
        case keepLocal
        case acceptServer
        case mergeColumns
        /// It merges values of both sides.
        case merge
        /// Deletions do not win.
        case revive
        case fail
    }

    let seed: UInt64
    let devices: Int
    /// By device.
    let resolvers: [Resolver]
    let policy: String
    let pageRows: Int
    let shownRows: Int
    /// How many of a hundred requests fail.
    let faults: Int
    /// How many rows each device writes in one transaction.
    let slice: Int
    var steps: [Step]

    static let owners = ["anna", "bert"]

    init(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        self.seed = seed
        devices = Int.random(in: 2...8, using: &random)
        policy =
            ["checkBase", "checkBase", "checkBase", "lastSyncWins", "lastSyncWins", "lastWriteWins"][
                Int.random(in: 0..<6, using: &random)]
        // One of five runs has none.
        let hasResolvers = random.chance(80)
        resolvers = (0..<devices).map { _ in
            hasResolvers ? Resolver.allCases.randomElement(using: &random) ?? .none : .none
        }
        pageRows = Int.random(in: 1...6, using: &random)
        shownRows = Int.random(in: 1...3, using: &random)
        faults = random.chance(70) ? 15 : 0
        slice = [1, 2, 5, 250][Int.random(in: 0..<4, using: &random)]
        steps = []
        let owners = Self.owners.prefix(Int.random(in: 0...2, using: &random))
        if !owners.isEmpty { steps.append(.link(Array(owners))) }
        for number in 0..<100 { steps.append(Self.step(number, devices, Array(owners), &random)) }
        if random.chance(60) { steps.insert(.upgradeServer, at: Int.random(in: 0...50, using: &random)) }
    }

    private static func step(
        _ number: Int, _ devices: Int, _ owners: [String], _ random: inout SeededRandom
    ) -> Step {
        let device = Int.random(in: 0..<devices, using: &random)
        switch Int.random(in: 0..<200, using: &random) {
        case ..<100: return .write(device, statement(device, number, owners, &random))
        case ..<108: return .writeNew(device, newStatement(number, &random))
        case ..<150: return .sync(device)
        case ..<156: return .resolve(device, Decision.allCases.randomElement(using: &random) ?? .keepLocal)
        case ..<162: return .restart(device)
        case ..<172: return .kill(device, statement: Int.random(in: 1...150, using: &random))
        case ..<180:
            let request = Int.random(in: 0..<3, using: &random)
            return .restartServer(device, request: request, isApplied: random.chance(50))
        case ..<184: return .upgradeApp(device)
        case ..<186: return .expireOutcome
        case ..<187: return .changeHistory(to: "e\(number)")
        case ..<190 where !owners.isEmpty: return .link(owners.filter { _ in random.chance(50) })
        default:
            guard let owner = owners.randomElement(using: &random) else { return .sync(device) }
            return .other(
                owner: owner, table: random.chance(50) ? "list" : "item", number: Int.random(in: 0..<4, using: &random),
                value: random.chance(80) ? "o\(number)" : nil)
        }
    }

    // MARK: Statements

    /// Ids of a linked owner's rows are its own, since an id belongs to one owner.
    static func id(_ owner: String, _ table: String, _ number: Int) -> String {
        table == "list" ? "\(owner)-\(number)" : "\((owner == owners[0] ? 100 : 200) + number)"
    }

    /// Each text that begins with `w` is written once.
    private static func statement(
        _ device: Int, _ number: Int, _ owners: [String], _ random: inout SeededRandom
    ) -> String {
        let text = "'w\(number)'"
        let list = "'l\(Int.random(in: 0..<4, using: &random))'"
        let item = Int.random(in: 1...8, using: &random)
        let pic = "x'0000000000000000000000000000000\(Int.random(in: 0..<4, using: &random))'"
        let own = "'own\(device)-\(Int.random(in: 0..<3, using: &random))'"
        if let owner = owners.randomElement(using: &random), random.once(in: 6) {
            let table = random.chance(50) ? "list" : "item"
            let id = "'\(Self.id(owner, table, Int.random(in: 0..<4, using: &random)))'"
            return random.chance(75)
                ? "UPDATE \(table) SET \(table == "list" ? "name" : "note") = \(text) WHERE id = \(id)"
                : "DELETE FROM \(table) WHERE id = \(id)"
        }
        let slot = "'s\(Int.random(in: 0..<2, using: &random))'"
        let near = "(SELECT id FROM item ORDER BY abs(id - \(item)) LIMIT 1)"
        return switch Int.random(in: 0..<22, using: &random) {
        case 0: "INSERT OR IGNORE INTO list VALUES (\(list), \(text))"
        case 1: "UPDATE list SET name = \(text) WHERE id = \(list)"
        case 2: "DELETE FROM list WHERE id = \(list)"
        case 3...4:
            "INSERT OR REPLACE INTO item (id, title, list) VALUES (\(item), \(text), (SELECT max(id) FROM list))"
        // Also a value that the row, or the server's, has had before.
        case 5:
            "UPDATE item SET note = \(["NULL", "'a'", text].randomElement(using: &random) ?? text) WHERE id = \(item)"
        case 6: "UPDATE item SET title = \(text)"
        case 7: "DELETE FROM item WHERE id = \(item); INSERT INTO item (id, title) VALUES (\(item), 'again')"
        case 8: "DELETE FROM item WHERE id > \(item)"
        case 9: "UPDATE OR REPLACE item SET id = \(item) WHERE id = \(9 - item)"
        case 10:
            "INSERT INTO pic VALUES (\(pic), \(text), '2026-01-02 03:04:05.678') ON CONFLICT DO UPDATE SET name = \(text)"
        case 11: "DELETE FROM pic WHERE id = \(pic)"
        case 12:
            "INSERT INTO item (id, title) VALUES (\(item), 'gone') ON CONFLICT DO NOTHING; DELETE FROM item WHERE id = \(item)"
        case 13: "DELETE FROM list WHERE id = \(own)"
        case 14...15: "UPDATE OR IGNORE item SET slot = \(slot) WHERE id = \(near)"
        case 16: "UPDATE OR REPLACE item SET slot = \(slot), note = \(text) WHERE id = \(near)"
        case 17: "INSERT OR IGNORE INTO item (id, title, slot) VALUES (\(item), \(text), \(slot))"
        case 18: "UPDATE item SET note = NULL"
        case 19: "UPDATE item SET note = \(text)"
        default: "INSERT INTO list VALUES (\(own), \(text)) ON CONFLICT (id) DO UPDATE SET name = \(text)"
        }
    }

    private static func newStatement(_ number: Int, _ random: inout SeededRandom) -> String {
        let text = "'w\(number)'"
        let tag = "'g\(Int.random(in: 0..<3, using: &random))'"
        return switch Int.random(in: 0..<4, using: &random) {
        case 0: "UPDATE item SET extra = \(text) WHERE id = \(Int.random(in: 1...8, using: &random))"
        case 1: "UPDATE item SET extra = \(text), title = \(text)"
        case 2: "DELETE FROM tag WHERE id = \(tag)"
        default: "INSERT INTO tag VALUES (\(tag), \(text)) ON CONFLICT (id) DO UPDATE SET name = \(text)"
        }
    }
}

extension ConvergenceScript: CustomStringConvertible {
    var description: String {
        """
        seed \(seed): \(devices) devices, resolvers \(resolvers), \(policy), pages of \(pageRows) rows, \(shownRows) rows shown, \(faults)% faults, \
        \(slice) rows in a transaction
        \(steps.map(\.description).joined(separator: "\n"))
        """
    }
}
