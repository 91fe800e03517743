import Testing

@testable import Ordering

/// From where in `ordered` streams are built that begin with the tables.
struct ResultPositionTests {
    @Test func aWorkerThatIsAloneStoresWhatFollowsItsOwnRecords() {
        var results = ResultPosition(stored: 5, end: 5, changesEnd: 100)
        #expect(results.append([5, 6]) == false)
        #expect(results.position(before: 3) == 7)
        #expect(results.append([]) == false)
        #expect(results.position(before: 4) == 7)
        #expect(results.append([7]) == false)
        #expect(results.position(before: 5) == 8)
    }

    /// The previous worker has ordered records that the tables do not hold.
    @Test func resultsThatAreThereAtTheStartStayAheadUntilTheTablesHoldTheirRecords() {
        var results = ResultPosition(stored: 5, end: 8, changesEnd: 10)
        #expect(results.append([8, 9]) == false)
        #expect(results.position(before: 9) == 5)
        #expect(results.append([10]) == false)
        #expect(results.position(before: 10) == 11)
        #expect(results.append([11]) == false)
        #expect(results.position(before: 11) == 12)
    }

    @Test(arguments: [[Int64(7)], [5, 7], [6, 7]])
    func resultsBetweenAWorkersOwnStayAheadUntilTheTablesHoldTheirRecords(offsets: [Int64]) {
        var results = ResultPosition(stored: 5, end: 5, changesEnd: 10)
        #expect(results.append(offsets) == true)
        results.hold(until: 20)
        #expect(results.position(before: 19) == 5)
        // Again, while the first are not passed.
        #expect(results.append([8, 10]) == true)
        results.hold(until: 30)
        #expect(results.position(before: 29) == 5)
        #expect(results.position(before: 30) == 11)
    }
}
