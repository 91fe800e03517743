import Testing
import WeirClient

/// What is read of the server's answers.
@Suite struct AnswerTests {
    private static func answer(
        row: String = "1", entry: String = "1", head: String = "1", result: String = "1"
    ) -> [UInt8] {
        Array(
            """
            {"syncId":"abc","epoch":"e1","schemaVersion":"s1","hasMore":true,"revoked":[],"resync":[],
            "batch":{"batch":1,"results":[{"status":"applied","timeStamp":\(result)}]},
            "changes":[{"table":"item","id":"x","syncId":"abc","timeStamp":\(row),"deleted":false,"values":{}}],
            "knowledge":[{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":\(entry)}],
            "cutFrom":[{"syncId":"abc","head":\(head)}]}
            """.utf8)
    }

    /// With others, differences of timeStamps would exceed 64 bits.
    @Test(arguments: ["-1", "9007199254740992", "9223372036854775807"])
    func timesThatNoServerOfTheContractHasAreRefused(time: String) {
        for answer in [
            Self.answer(row: time), Self.answer(entry: time), Self.answer(head: time), Self.answer(result: time),
        ] {
            #expect(throws: JSONReader.Malformed.self) { try SyncAnswer(json: answer) }
        }
    }

    @Test(arguments: ["0", "9007199254740991"]) func timesOfTheContractAreRead(time: String) throws {
        let answer = try SyncAnswer(json: Self.answer(row: time, entry: time, head: time, result: time))
        #expect(answer.changes.first?.timeStamp == Int64(time))
        #expect(answer.cutFrom.first?.head == Int64(time))
    }
}
