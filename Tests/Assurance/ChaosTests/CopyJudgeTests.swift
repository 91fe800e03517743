import DeviceModel
import SyncModel
import Testing

@testable import Chaos

/// The rows of drained devices, against those of Postgres.
struct CopyJudgeTests {
    /// A device that has pulled the row r0 at 100, and is at a head.
    private func copy(head: Int = 100) throws -> DeviceCopy {
        var copy = DeviceCopy()
        for row in try Sample.page([("anna", "r0", 100)]).rows { copy.apply(row, Sample.schema) }
        copy.applyVector(
            of: try Sample.answer(
                #"{"knowledge":[{"syncId":"anna","knowledgeId":"k1","lastTimeStamp":\#(head)}],"hasMore":false}"#))
        return copy
    }

    private func judge(_ copy: DeviceCopy, _ rows: [OrderedRow]) -> [Finding] {
        CopyJudge.judge(
            copy, of: "anna/k1", owners: [Sample.owner], tables: [Sample.owner: rows], Sample.schema)
    }

    @Test func theSameRowsAreEqual() throws { #expect(judge(try copy(), [Sample.row("r0", 100)]) == []) }

    @Test func aDeviceThatIsNotAtTheEndIsFound() throws {
        let found = judge(try copy(head: 99), [Sample.row("r0", 100)])
        #expect(found.map(\.kind) == [.copy])
        #expect(found[0].text.contains("is at 99 of anna, and Postgres at 100"), "\(found)")
    }

    @Test func aMissingRowIsFound() throws {
        let found = judge(try copy(), [Sample.row("r0", 100), Sample.row("r1", 90)])
        #expect(found.map(\.kind) == [.copy])
        #expect(found[0].text.contains("r1 is missing"), "\(found)")
    }

    @Test func anotherValueIsFound() throws {
        #expect(judge(try copy(), [Sample.row("r0", 100, title: #""x""#)]).map(\.kind) == [.copy])
    }

    @Test func aRowThatPostgresDoesNotHaveIsFound() throws {
        let found = judge(try copy(), [Sample.row("r1", 100)])
        #expect(found.map(\.kind) == [.copy])
    }
}
