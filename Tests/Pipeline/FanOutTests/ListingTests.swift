import FanOut
import FanOutLink
import Foundation
import SyncModel
import Testing

/// Rows by id and by time, each compared with the rows that ordering has.
@Suite(.timeLimit(.minutes(5))) struct ListingTests {
    /// Owners with rows of two tables, made by more devices than are outside the index by time, some of them deleted.
    private static func world() throws -> World {
        let world = World()
        for number in 0..<360 {
            let device = Device(caller: "abc", knowledgeID: "d\(number % 120)")
            let change =
                number % 3 == 0
                ? Change.note("n\(number % 70)", body: "x\(number)", by: device.knowledgeID)
                : Change.person(
                    "p\(number % 90)", name: number % 7 == 0 ? nil : "A\(number)", by: device.knowledgeID,
                    isDelete: number % 11 == 0)
            try world.upload([change], owner: number % 4 == 0 ? "def" : "abc", device: device)
        }
        return world
    }

    private func withListing(_ body: (World, Service) async throws -> Void) async throws {
        let world = try Self.world()
        try await withFanOut(world) {
            $0.rowIndexes = true
        } _: { service in
            try await service.caughtUp(with: world)
            try await body(world, service)
        }
    }

    @Test(arguments: [1, 7, 1000]) func aTableComesInTheOrderOfItsIds(limit: Int) async throws {
        try await withListing { world, service in
            for (owner, table) in [(SyncID("abc"), 0), ("abc", 1), ("def", 0), ("def", 1)] {
                let expected = world.stream(of: owner).filter { $0.key.table == table }.sorted { $0.key.id < $1.key.id }
                try await service.expect(expected, .table(table, after: nil), of: owner, limit: limit, world)
                let middle = expected[expected.count / 2].key.id
                let after = expected.filter { middle < $0.key.id }
                try await service.expect(after, .table(table, after: middle), of: owner, limit: limit, world)
            }
        }
    }

    @Test(arguments: [1, 7, 1000]) func changesComeInTheOrderOfTheirTimeStamps(limit: Int) async throws {
        try await withListing { world, service in
            for table in [nil, 0, 1] {
                let all = world.stream(of: "abc").filter { table == nil || $0.key.table == table }
                let (above, upTo) = (all[all.count / 3].timeStamp, all[all.count / 2].timeStamp)
                for (above, upTo) in [(TimeStamp.zero, TimeStamp.maximum), (above, upTo), (above, .maximum)] {
                    try await service.expect(
                        all.filter { above < $0.timeStamp && $0.timeStamp <= upTo },
                        .changes(above: above, upTo: upTo, table: table), of: "abc", limit: limit, world)
                }
            }
        }
    }

    /// A read begins beside the rows of other tables, and continues by the table's index where these are too many.
    @Test(arguments: [1, 4, 1000]) func changesOfATableAreFoundAmongManyOfAnother(limit: Int) async throws {
        let world = World()
        for number in 0..<400 {
            let isRare = [0, 5, 6, 60, 61, 62, 63, 64, 200, 399].contains(number)
            let device = Device(caller: "abc", knowledgeID: "d\(number % 3)")
            let change =
                isRare
                ? Change.note("n\(number)", body: "x", by: device.knowledgeID)
                : Change.person("p\(number)", by: device.knowledgeID)
            try world.upload([change], owner: "abc", device: device)
        }
        try await withFanOut(world) {
            $0.rowIndexes = true
        } _: { service in
            try await service.caughtUp(with: world)
            let all = world.stream(of: "abc")
            for above in [0, 4, 5, 63, 199, 200].map({ all[$0].timeStamp }) + [.zero] {
                for table in [0, 1] {
                    try await service.expect(
                        all.filter { above < $0.timeStamp && $0.key.table == table },
                        .changes(above: above, upTo: .maximum, table: table), of: "abc", limit: limit, world)
                }
            }
            // Beside many rows of another table.
            let rare = all.filter { $0.key.table == 1 }
            let selection = StreamQuery.Selection.changes(above: .zero, upTo: .maximum, table: 1)
            try await service.expect(rare, selection, of: "abc", limit: limit, world)
        }
    }

    @Test func rowsComeInTheOrderOfTheIdsAskedFor() async throws {
        try await withListing { world, service in
            let rows = world.stream(of: "abc").filter { $0.key.table == 0 }.prefix(20).reversed()
            let ids = [RowID("absent")] + rows.map(\.key.id) + ["p", "z", "n3"]
            try await service.expect(Array(rows), .ids(table: 0, ids), of: "abc", limit: 6, world)
            try await service.expect([], .ids(table: 0, ["n3"]), of: "abc", limit: 6, world)
            try await service.expect([], .ids(table: 9, ["p1"]), of: "abc", limit: 6, world)
        }
    }

    @Test func anOwnerWithoutRowsHasNone() async throws {
        try await withListing { world, service in
            for selection: StreamQuery.Selection in [
                .table(0, after: nil), .ids(table: 0, ["p1"]),
                .changes(above: .zero, upTo: .maximum, table: nil),
            ] {
                try await service.expect([], selection, of: "nobody", limit: 5, world)
            }
        }
    }

    @Test func theFirstRowComesWhateverItsSize() async throws {
        try await withListing { world, service in
            let query = StreamQuery(of: "abc", .table(0, after: nil), maximumBytes: 1)
            let found = try #require(try await service.fanOut.rows(query, within: .zero))
            let first = try #require(world.stream(of: "abc").filter { $0.key.table == 0 }.map(\.key.id).min())
            #expect(found.rows.count == 1 && found.rest == .table(0, after: first))
        }
    }

    @Test func anOlderStreamIsWaitedFor() async throws {
        try await withListing { world, service in
            let head = world.head(of: "abc")
            var query = StreamQuery(of: "abc", .table(0, after: nil), leastHead: TimeStamp(head.rawValue + 1))
            // The log has nothing more.
            let none = try await service.fanOut.rows(query, within: .seconds(60))
            #expect(none == nil)
            query.leastHead = head
            let found = try await service.fanOut.rows(query, within: .zero)
            #expect(found?.head == head)
        }
    }

    @Test func indexesExistWhereTheyAreAskedFor() async throws {
        let world = try Self.world()
        try await withFolder { folder in
            for hasIndexes in [false, true, false, true] {
                try await withFanOut(world, in: folder) {
                    $0.rowIndexes = hasIndexes
                } _: { service in
                    try await service.caughtUp(with: world)
                    let query = StreamQuery(of: "abc", .ids(table: 0, ["p1"]))
                    if hasIndexes {
                        let found = try await service.fanOut.rows(query, within: .zero)
                        #expect(found?.rows.count == 1)
                    } else {
                        await #expect(throws: FanOutError.self) { try await service.fanOut.rows(query, within: .zero) }
                    }
                    try world.upload([.person("p1")])
                    try await service.caughtUp(with: world)
                }
            }
        }
    }
}

/// A row of an answer.
private struct Row: Equatable {
    let table: Int
    let timeStamp: TimeStamp
    let createdAt: Int64
    let isExact: Bool
    let columns: Int
    let json: String
}

extension Service {
    /// Reads everything that a selection has, answer by answer, and compares it.
    fileprivate func expect(
        _ expected: [OrderedRow], _ selection: StreamQuery.Selection, of owner: SyncID, limit: Int,
        maximumBytes: Int = 1 << 20, _ world: World
    ) async throws {
        var rest: StreamQuery.Selection? = selection
        var found: [Row] = []
        while let next = rest {
            let query = StreamQuery(of: owner, next, limit: limit, maximumBytes: maximumBytes)
            let answer = try #require(try await fanOut.rows(query, within: .zero))
            #expect(answer.rows.count <= limit && answer.head == world.head(of: owner))
            found += answer.rows.map {
                Row(
                    table: $0.table, timeStamp: $0.timeStamp, createdAt: $0.createdAt, isExact: $0.isExact,
                    columns: $0.columns, json: String(decoding: answer.json[$0.json], as: UTF8.self))
            }
            #expect(answer.rest != next)
            rest = answer.rest
        }
        let rows = expected.map {
            Row(
                table: $0.key.table, timeStamp: $0.timeStamp, createdAt: $0.createdAt, isExact: $0.isExact,
                columns: $0.values.count, json: world.json($0))
        }
        #expect(found == rows)
    }
}
