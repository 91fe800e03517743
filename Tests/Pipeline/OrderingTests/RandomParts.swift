import Seeded
import SyncModel

/// Messages of few rows and devices, so that they meet often; among them deliveries that repeat, batches that repeat, from
/// the newest to those whose outcomes are gone, and batches with other content.
func randomParts(_ count: Int, seed: UInt64, owners: [String]) -> [ChangePart] {
    var generator = SeededRandom(seed: seed)
    var maker = PartMaker()
    var parts: [ChangePart] = []
    var batches: [DeviceKey: Int64] = [:]
    // A generator of its own: the other content of a seed is what it was without ids.
    var named = SeededRandom(seed: ~seed)
    for number in 0..<count {
        if let old = parts.randomElement(using: &generator), generator.chance(6) {
            parts.append(old)
            continue
        }
        let owner = owners.randomElement(using: &generator) ?? "abc"
        let schema = number < count / 2 ? 1 : generator.chance(50) ? 2 : 1
        var changes: [Change] = []
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let table = generator.chance(70) ? Fixture.note : Fixture.account
            let columns = table == Fixture.note && schema == 2 ? 3 : 2
            let values = (0..<columns).map { column in
                generator.chance(30) ? nil : column == 0 ? "\(number)" : "\"\(number)\""
            }
            changes.append(
                .edit(
                    "r\(Int.random(in: 0...4, using: &generator))", values, table: table,
                    isDelete: generator.chance(20), base: Int64.random(in: 0...200, using: &generator)))
        }
        var part = maker.part(
            changes, owner: owner, device: generator.chance(75) ? "k1" : "k2", content: UInt8(number % 250),
            schema: schema)
        let highest = batches[part.deviceKey] ?? 0
        if let old = parts.last(where: { $0.deviceKey == part.deviceKey }), generator.chance(25), old.batch != nil {
            // What the device uploaded before, a long time ago or just now.
            let batch = max(1, highest - Int64.random(in: 0...24, using: &generator))
            part.batch = batch
            if let first = parts.first(where: { $0.deviceKey == part.deviceKey && $0.batch == batch }),
                generator.chance(85)
            {
                part.contentHash = first.contentHash
                part.changes = first.changes
                part.schema = first.schema
            }
        } else if generator.chance(92) {
            part.batch = highest + (generator.chance(90) ? 1 : 3)
        }
        for index in part.changes.indices where part.changes[index].identity == nil && named.chance(40) {
            // Few ids, so that most were used before, and half of them with the same content.
            part.changes[index].name(
                id: UInt8.random(in: 0...20, using: &named), content: UInt8.random(in: 0...1, using: &named))
        }
        if named.chance(20) { part.maxOwnerRows = Int.random(in: 1...8, using: &named) }
        if named.chance(20) { part.maxOwnerBytes = Int.random(in: 1...60, using: &named) }
        batches[part.deviceKey] = max(highest, part.batch ?? 0)
        parts.append(part)
    }
    return parts
}
