import Configuration
import FanOut
import SyncModel
import Testing

/// The setting that selects a fan-out's partitions.
@Suite struct ServedPartitionsTests {
    private func history(_ partitions: Int) -> History { History(epoch: "e", partitions: partitions) }

    @Test(arguments: [
        ("all", "all", [0, 1, 2, 3, 4, 5]), ("3", "3", [3]), ("0-2,4", "0-2,4", [0, 1, 2, 4]),
        ("4, 0 - 1 ,1", "0-1,4", [0, 1, 4]), ("2-3,0-1,3-4", "0-4", [0, 1, 2, 3, 4]), ("5-5,0", "0,5", [0, 5]),
    ])
    func readsNumbersAndRanges(text: String, spelled: String, numbers: [Int]) throws {
        let served = try #require(PartitionSelection(text))
        #expect(served.description == spelled)
        #expect(PartitionSelection(spelled) == served)
        #expect(try served.numbers(in: history(6)) == numbers)
    }

    @Test(arguments: ["", ",", "1,", "-", "1-", "-1", "3-2", "1-2-3", "a", "1;2", "All", "1 2", "100000", "+1", "٣"])
    func refusesOtherTexts(text: String) {
        #expect(PartitionSelection(text) == nil)
    }

    @Test func refusesPartitionsThatDoNotExist() throws {
        let served = try #require(PartitionSelection("0-3,6-7"))
        #expect(try served.numbers(in: history(8)) == [0, 1, 2, 3, 6, 7])
        let error = try #require(throws: PartitionSelection.OutOfRange.self) { try served.numbers(in: history(3)) }
        #expect(
            error.description
                == "fanout.partitions names 3,6-7; there are 3 partitions, numbered from 0 to 2")
    }

    @Test func isASettingOfTheFanOut() throws {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(FanOutConfiguration.self, as: "fanout", "Fan-out")
        func read(_ text: String) throws -> PartitionSelection {
            let sources = ConfigurationSources(defaultFile: "weir.yaml") { (_, _) throws(FileFault) in Array(text.utf8)
            }
            return try schema.load(from: sources) { $0.read(FanOutConfiguration.self) }.settings.partitions
        }
        #expect(try read("{}") == .all)
        #expect(try read("fanout: { partitions: 7 }").description == "7")
        #expect(try read("fanout: { partitions: [0-3, 7] }").description == "0-3,7")
        let problems = #expect(throws: ConfigurationProblems.self) { try read("fanout: { partitions: 3-1 }") }
        #expect(problems?.description.contains("numbers and ranges of partitions") == true)
    }
}
