import ChangeLog
import Ingest
import SyncModel
import SyncWire
import Testing

@Suite struct PartTests {
    @Test func statesInEveryPartWhatOrderingNeeds() throws {
        var upload = Upload([#"{"table":"note","id":"1"}"#, #"{"table":"note","id":"2","syncId":"bob"}"#])
        upload.isAtomic = true
        let decoded = try upload.admitted()
        #expect(decoded.outline == ["ann 0", "bob 1"])
        #expect(decoded.parts.map(\.part) == [0, 1])
        for part in decoded.parts {
            #expect(part.epoch == "h1" && part.rules == 1 && part.schema == Fixture.newest)
            #expect(part.upload == UploadReference(partition: 2, offset: 42))
            #expect(part.logTime == 1_767_323_045_000_000)
            #expect(part.device.caller.text == "ann" && part.device.knowledgeID.text == "k1")
            #expect(part.batch == 7 && part.isAtomic && !part.hasOtherEpoch && !part.hasIngestRefusal)
            #expect(part.contentHash == decoded.parts[0].contentHash && part.contentHash.count == 32)
        }
        #expect(decoded.parts[0].summary == BatchSummary(changeCount: 2, otherOwners: [SyncID(unchecked: "bob")]))
        #expect(decoded.parts[1].summary == nil)
        #expect(decoded.letters.isEmpty)
        #expect(decoded.admitted.changeCount == 2 && decoded.admitted.refusals.isEmpty)
        #expect(decoded.admitted.recordRefusal == nil)
    }

    @Test func keysEachPartByItsOwnerWhoHasAPartitionForEver() throws {
        let decoded = try Upload([#"{"table":"note","id":"2","syncId":"bob"}"#]).admitted()
        let expected = ["ann", "bob"].map { owner in
            (Array(owner.utf8), TopicPartition(.changes, Fixture.partitioning.partition(of: SyncID(unchecked: owner))))
        }
        #expect(decoded.admitted.records.map(\.key) == expected.map(\.0))
        #expect(decoded.admitted.records.map(\.destination) == expected.map(\.1))
    }

    @Test(arguments: ["[]", " [ ] ", "[null]", "[17,\"a\"]"])
    func givesTheCallerPart0EvenEmpty(changes: String) throws {
        let decoded = try Upload(changes).admitted()
        #expect(decoded.parts.count == 1)
        let part = try #require(decoded.parts.first)
        #expect(part.owner.text == "ann" && part.part == 0 && part.changes.isEmpty)
        #expect(part.summary?.changeCount == decoded.refusals.count)
        #expect(decoded.letters.count == (decoded.refusals.isEmpty ? 0 : 1))
    }

    @Test func givesTheCallerPart0WhereItMayWriteNothingOfItsOwn() throws {
        let upload = Upload([#"{"table":"note","id":"1"}"#, #"{"table":"note","id":"2","syncId":"bob"}"#])
            .with(\.grants, [("bob", .write)])
        let decoded = try upload.admitted()
        #expect(decoded.outline == ["ann !", "bob 1"])
        #expect(decoded.refusals.map(\.index) == [0] && decoded.refusals.map(\.code) == [.notGranted])
    }

    @Test func putsOtherOwnersInTheOrderOfTheirFirstAppearance() throws {
        let upload = Upload([
            // Zoe appears first with a change that is refused.
            #"{"table":"nothing","id":"1","syncId":"zoe"}"#, #"{"table":"note","id":"2","syncId":"bob"}"#,
            #"{"table":"note","id":"3"}"#, #"{"table":"note","id":"4","syncId":"zoe"}"#,
            #"{"table":"note","id":"5","syncId":"bob"}"#, #"{"table":"note","id":"6","syncId":"ann"}"#,
            // Of Dan nothing is admitted.
            #"{"table":"nothing","id":"7","syncId":"dan"}"#,
        ]).with(\.grants, [("dan", .write), ("zoe", .write), ("bob", .write), ("ann", .write)])
        let decoded = try upload.admitted()
        #expect(decoded.outline == ["ann 2 5", "zoe 3 !", "bob 1 4"])
        #expect(decoded.parts.map(\.part) == [0, 1, 2])
        #expect(decoded.parts[0].summary?.otherOwners.map(\.text) == ["zoe", "bob"])
    }

    @Test func comparesOwnersByTheirBytes() throws {
        // é as one scalar and as two: String takes them for equal.
        let upload = Upload([
            #"{"table":"note","id":"1","syncId":"é"}"#, #"{"table":"note","id":"2","syncId":"e\u0301"}"#,
        ]).with(\.grants, [("ann", .write), ("é", .write)])
        let decoded = try upload.admitted()
        #expect(decoded.outline == ["ann", "é 0"])
        #expect(decoded.refusals.map(\.code) == [.notGranted])
    }

    @Test func tellsEachOwnersPartOfItsOwnRefusalsAlone() throws {
        let upload = Upload([
            #"{"table":"note","id":"1"}"#, #"{"table":"note","id":"2","syncId":"bob"}"#,
            // The owner counts although it stands behind what is wrong.
            #"{"table":17,"id":"3","syncId":"bob"}"#,
        ])
        #expect(try upload.admitted().outline == ["ann 0", "bob 1 !"])
        let own = Upload([#"{"table":"note","id":"1"}"#, "3", #"{"table":"note","id":"2","syncId":"bob"}"#])
        #expect(try own.admitted().outline == ["ann 0 !", "bob 2"])
    }

    @Test func fillsInWhatAChangeLeavesOut() throws {
        let change = try #require(try Upload([#"{"table":"note","id":"1"}"#]).admitted().parts[0].changes.first)
        #expect(
            change
                == Change(
                    index: 0, table: 0, id: RowID(unchecked: "1"), knowledgeID: KnowledgeID(unchecked: "k1"),
                    values: RowValues()))
    }

    @Test func takesNullForMissing() throws {
        let nulls = #"""
            {"table":"task","id":"1","syncId":null,"knowledgeId":null,"deleted":null,"values":null,"base":null,
             "ifBase":null,"ifUnchanged":null,"updatedAt":null}
            """#
        let decoded = try Upload([nulls]).admitted()
        let bare = try Upload([#"{"table":"task","id":"1"}"#]).admitted()
        #expect(decoded.parts == bare.parts && decoded.parts[0].changes.count == 1)
    }

    @Test func takesEveryFieldAndIgnoresUnknownOnes() throws {
        let full = #"""
            {"updatedAt":"2026-01-02T03:04:05.000006Z","ifBase":true,"base":101.0,"deleted":true,"new":{"a":[1]},"new":2,
             "values":{"color":"red","count":3,"title":"A"},"knowledgeId":"k9","syncId":"bob","id":"x","table":"note"}
            """#
        let decoded = try Upload([full]).admitted()
        #expect(decoded.outline == ["ann", "bob 0"])
        let change = try #require(decoded.parts[1].changes.first)
        #expect(change.json == ["\"A\"", "3"] + Array(repeating: "", count: 9) + ["\"red\""])
        #expect(change.knowledgeID.text == "k9" && change.id.text == "x" && change.isDelete && change.ifBase)
        #expect(change.base == TimeStamp(101) && change.updatedAt == 1_767_323_045_000_006 && !change.isAltered)
    }

    @Test func endsTheValuesWithTheLastColumnSent() throws {
        let changes = try Upload([
            #"{"table":"note","id":"1","values":{"count":1}}"#, #"{"table":"note","id":"2","values":{}}"#,
            #"{"table":"note","id":"3","values":{"title":"A","color":null}}"#,
        ]).admitted().parts[0].changes
        #expect(changes[0].json == ["", "1"])
        #expect(changes[1].json == [])
        #expect(changes[2].json == ["\"A\""] + Array(repeating: "", count: 10) + ["null"])
    }

    @Test func saysWhetherAValueWasAltered() throws {
        let values = [
            (#"{"table":"note","id":"1","values":{"count":5.0,"title":"\u0041"}}"#, false),
            (#"{"table":"note","id":"1","values":{"count":"5"}}"#, true),
            (#"{"table":"note","id":"1","values":{"price":"1.50","title":"A"}}"#, false),
            (#"{"table":"note","id":"1","values":{"price":"1.5","title":"A"}}"#, true),
            // Rows show updatedAt under lastWriteWins alone.
            (#"{"table":"note","id":"1","updatedAt":"2026-01-02T03:04:05Z"}"#, false),
            (#"{"table":"task","id":"1","updatedAt":"2026-01-02T03:04:05Z"}"#, true),
            (#"{"table":"task","id":"1","updatedAt":"2026-01-02T03:04:05.000000Z"}"#, false),
        ]
        let changes = try Upload(values.map(\.0)).admitted().parts[0].changes
        #expect(changes.map(\.isAltered) == values.map(\.1))
    }

    @Test func readsChangesByTheSchemaVersionTheyName() throws {
        let long = #"{"table":"note","id":"1","values":{"title":"longer"}}"#
        let added = #"{"table":"task","id":"1","values":{"a":"A","b":"B"}}"#
        let upload = Upload([long, added, #"{"table":"place","id":"1"}"#])
        let new = try upload.admitted()
        #expect(new.outline == ["ann 0 1 2"] && new.parts[0].changes[1].json == ["\"B\"", "\"A\""])
        let old = try upload.with(\.schema, Fixture.oldest).admitted()
        #expect(old.outline == ["ann !"] && old.parts[0].schema == Fixture.oldest)
        #expect(old.refusals.map(\.code) == [.invalidValue, .unknownColumn, .unknownTable])
    }

    @Test func appliesNothingOfADeviceOfAnotherHistory() throws {
        let upload = Upload([#"{"table":"note","id":"1"}"#, #"{"table":"note","id":"2","syncId":"bob"}"#, "3"])
        let other = try upload.with(\.epoch, "h2").admitted()
        #expect(other.outline == ["ann"] && other.letters.isEmpty)
        #expect(other.parts[0].hasOtherEpoch && other.parts[0].epoch == "h1")
        // One that says nothing of it is of this one.
        let silent = try upload.with(\.epoch, "").admitted()
        #expect(silent.outline == ["ann 0 !", "bob 1"] && !silent.parts[0].hasOtherEpoch)
    }

    @Test func keepsABatchWithoutANumberWithoutOne() throws {
        let decoded = try Upload([#"{"table":"note","id":"1"}"#]).with(\.batch, nil).admitted()
        #expect(decoded.parts[0].batch == nil)
    }

    @Test func givesTheSameBytesForTheSameRecordWhateverCameBefore() throws {
        let uploads = [
            Upload([#"{"table":"note","id":"1","values":{"title":"A","labels":[1, 2]}}"#, "7"]),
            Upload([#"{"table":"task","id":"1","syncId":"bob","values":{"a":"x"}}"#]).with(\.schema, Fixture.oldest),
            Upload("[1,2"), Upload([#"{"table":"note","id":"1","syncId":"zoe"}"#]),
            Upload([#"{"table":"note","id":"1"}"#]).with(\.epoch, "h2"),
        ]
        var used = Admission(history: Fixture.history(recordSize: 1 << 20))
        for upload in uploads + uploads.reversed() {
            let first = try upload.admitted().admitted
            #expect(try used.admit(upload.record, of: upload.partition, schemas: Fixture.schemas) == first)
        }
    }
}
