import AsyncPrimitives
import ChangeLog
import MemoryChangeLog
import RecordStore
import SyncModel
import SyncWire
import Testing
import Verification

@Suite(.timeLimit(.minutes(5))) struct VerifierTests {
    @Test func whatOrderingWroteIsEqual() async throws {
        try await World.with { world in
            try await world.appendChanges(60)
            try await world.order()
            let found = try await world.verify()
            for subject in ["position", "tables", "ordered", "stream"] {
                #expect(found[subject]?.isEqual == true, "\(subject): \(String(describing: found[subject]))")
            }
        }
    }

    @Test func tablesThatLagAreEqualAtTheirPosition() async throws {
        try await World.with { world in
            try await world.appendChanges(20)
            try await world.order()
            // Results that these tables never get.
            try await world.appendChanges(20, from: 20)
            try await world.withTables(at: world.folder + "/other.db") { _ in }
            try await world.order(at: world.folder + "/other.db")
            let found = try await world.verify()
            #expect(found["position"] == .equal("at offset 20 of changes"))
            #expect(found["tables"]?.isEqual == true)
            guard case .equal(let text) = found["ordered"] else {
                Issue.record("\(String(describing: found["ordered"]))")
                return
            }
            #expect(text.contains("20 repeated"), "\(text)")
        }
    }

    @Test(arguments: [
        ("UPDATE note SET b = 'other' WHERE id = 'r1'", "table note, owner abc, id r1, column b", 1),
        ("UPDATE note SET version = version + 1 WHERE id = 'r2'", "table note, owner abc, id r2, column version", 1),
        ("DELETE FROM note WHERE id = 'r4'", "table note, owner abc, id r4", 1),
        ("UPDATE note SET id = 'stray' WHERE id = 'r0'", "table note, owner abc, id stray", 2),
        (
            "UPDATE weir_outcomes SET outcome = (SELECT outcome FROM weir_outcomes AS o WHERE o.place <> weir_outcomes.place"
                + " AND o.batch = weir_outcomes.batch LIMIT 1) WHERE place = (SELECT min(place) FROM weir_outcomes)",
            "device k0 of abc, with owner abc, batch ", 1
        ),
        (
            "DELETE FROM weir_outcomes WHERE place = (SELECT min(place) FROM weir_outcomes)",
            "device k0 of abc, with owner abc, batch ", 1
        ),
        ("UPDATE weir_owners SET bytes = bytes + 1", "usage of owner abc", 1),
        ("UPDATE weir_owners SET rows = 0, bytes = 0, deleted_rows = 0, deleted_bytes = 0", "usage of owner abc", 1),
        ("INSERT INTO weir_owners VALUES ('other', 0, 1, 1, 0, 0)", "usage of owner other", 1),
        (
            "DELETE FROM weir_applied_changes WHERE change_id = zeroblob(16)",
            "device k0 of abc, with owner abc, changeId with hash 00000000000000000000000000000000", 1
        ),
        (
            "UPDATE weir_applied_changes SET content = randomblob(16) WHERE change_id = zeroblob(16)",
            "device k0 of abc, with owner abc, changeId with hash 00000000000000000000000000000000", 1
        ),
        (
            "UPDATE weir_applied_changes SET time_stamp = time_stamp + 1 WHERE change_id = zeroblob(16)",
            "device k0 of abc, with owner abc, changeId with hash 00000000000000000000000000000000", 1
        ),
        (
            "INSERT INTO weir_applied_changes SELECT device, x'0F0F0F0F0F0F0F0F0F0F0F0F0F0F0F0F', content, 1, 1, 0, NULL"
                + " FROM weir_applied_changes WHERE change_id = zeroblob(16)",
            "device k0 of abc, with owner abc, changeId with hash 0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", 1
        ),
    ]) func aChangeInTheTablesIsNamed(sql: String, item: String, count: Int) async throws {
        try await World.with { world in
            try await world.appendChanges(60)
            try await world.order()
            try await world.execute(sql)
            let difference = try #require(try await world.difference(in: "tables"))
            #expect(difference.0.item.hasPrefix(item), "\(difference.0)")
            #expect(difference.0.expected != difference.0.found)
            #expect(difference.count == count)
        }
    }

    /// The store's snapshot, which waits for its next chunk to be consumed, is ended.
    @Test func tablesThatCannotBeReadAreUnknown() async throws {
        try await World.with { world in
            try await world.appendChanges(60)
            try await world.order()
            try await world.execute("DELETE FROM note WHERE id = 'r4'")
            let fault = RecordStoreError(.unavailable, message: "the disk does not answer", isRetriable: true)
            let found = try await world.verify(rowsFault: fault)["tables"]
            #expect(found == .unknown("they cannot be read: the disk does not answer"))
        }
    }

    @Test func tablesAheadOfTheLogAreNamed() async throws {
        try await World.with { world in
            try await world.appendChanges(5)
            try await world.order()
            try await world.execute("UPDATE weir_partitions SET next_offset = 6")
            let difference = try #require(try await world.difference(in: "tables"))
            #expect(difference.0.item == "the partition's offset in changes")
            #expect(difference.0.expected == "at most 5")
            #expect(difference.0.found == "6")
        }
    }

    @Test func resultsOfMissingRecordsAreNamed() async throws {
        try await World.with { world in
            try await world.appendChanges(5)
            try await world.order()
            let last = try await world.records(of: .ordered).last
            var piece = try OrderedPiece(decoding: try #require(last))
            piece.changesOffset = 5
            try await world.append([piece.encode(naming: World.schemas.entries[0].schema), [1, 2, 3]], to: .ordered)
            let difference = try #require(try await world.difference(in: "ordered"))
            #expect(difference.0.item == "ordered offset 5")
            #expect(difference.0.found == "piece 0 of the result of changes offset 5")
            #expect(difference.count == 2)
        }
    }

    @Test func missingAndAlteredResultsAreNamed() async throws {
        try await World.with { world in
            try await world.appendChanges(6)
            try await world.order()
            let records = try await world.records(of: .ordered)
            // The same changes in another log, whose third result is missing and whose fifth differs.
            try await World.with { other in
                try await other.append(try await world.records(of: .changes), to: .changes)
                var piece = try OrderedPiece(decoding: records[4])
                piece.rows[0].row.version += 3
                let altered = piece.encode(naming: World.schemas.entries[0].schema)
                try await other.append([records[0], records[1], records[3], altered, records[5]], to: .ordered)
                let difference = try #require(try await other.difference(in: "ordered"))
                #expect(difference.0.item == "ordered before offset 2")
                #expect(difference.0.expected == "piece 0 of the result of changes offset 2")
                #expect(difference.count == 2)
            }
        }
    }

    @Test func aRecordThatCannotBeOrderedIsExplained() async throws {
        try await World.with { world in
            try await world.appendChanges(3)
            try await world.order()
            try await world.append([[1, 2, 3]], to: .changes)
            // A result of it makes the replay advance to it.
            var piece = try OrderedPiece(decoding: try #require(try await world.records(of: .ordered).last))
            piece.changesOffset = 3
            try await world.append([piece.encode(naming: World.schemas.entries[0].schema)], to: .ordered)
            guard case .unknown(let text) = try await world.verify()["changes"] else {
                Issue.record("there is no finding on changes")
                return
            }
            #expect(text.contains("changes[0] offset 3: the record cannot be read"))
        }
    }
}

extension World {
    /// The values of a topic.
    func records(of topic: Topic) async throws -> [[UInt8]] {
        let partition = TopicPartition(topic, 0)
        let end = try await log.range(of: partition).end
        let reader = try await log.reader(of: partition, from: 0)
        let result = await Result.capturing {
            var values: [[UInt8]] = []
            while values.count < Int(end) { values += try await reader.next(maximumBytes: 1 << 20).map(\.value) }
            return values
        }
        await reader.close()
        return try result.get()
    }
}
