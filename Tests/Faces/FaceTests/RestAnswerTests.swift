import SyncModel
import Testing

@testable import RestFace

/// What a gateway remembers of downloads, so that a device gets no row again over an edit of it, is bounded (I10).
@Suite struct RestAnswerTests {
    private let answers = RestAnswers(maximumCount: 20)

    private func device(_ caller: String, _ number: Int = 0) -> Device {
        Device(caller: SyncID(unchecked: caller), knowledgeID: KnowledgeID(unchecked: "k\(number)"))
    }

    /// The device has downloaded up to 100, and uploaded since.
    private func download(_ device: Device, table: Int = 0) {
        answers.answered(answers.begin(), of: device, table, upTo: TimeStamp(100))
        answers.uploaded(device, table)
    }

    private func isKnown(_ device: Device, table: Int = 0) -> Bool {
        answers.received(device, table, ts: TimeStamp(101), mark: 0) == TimeStamp(100)
    }

    @Test func madeUpDevicesDisplaceNoAnswersOfOthers() {
        for table in 0..<2 { download(device("y"), table: table) }
        for number in 0..<1000 { download(device("x", number)) }
        #expect(isKnown(device("y"), table: 0) && isKnown(device("y"), table: 1))
        // Of its own the newest are known.
        #expect(isKnown(device("x", 999)) && !isKnown(device("x", 0)))
    }

    @Test func aFurtherAnswerToADeviceTakesNoSpace() {
        for number in 0..<20 { download(device("c\(number)")) }
        for _ in 0..<10 { download(device("c3")) }
        #expect((0..<20).allSatisfy { isKnown(device("c\($0)")) })
    }

    @Test func whereNoCallerHasManyTheOldestAreForgotten() {
        for number in 0..<21 { download(device("c\(number)")) }
        #expect((0..<21).map { isKnown(device("c\($0)")) } == [false, false] + Array(repeating: true, count: 19))
    }
}
