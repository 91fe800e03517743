import Gateway
import SyncModel
import Testing

/// What a face says about tables that it cannot serve.
@Suite struct SchemaTests {
    private func problem(_ tested: TestedFace, _ table: Table) -> String? {
        tested.face.problem(with: Schema(tables: [table]))
    }

    @Test(arguments: TestedFace.all) func aColumnMayNotHaveANameOfTheProtocol(tested: TestedFace) {
        for name in tested.reservedColumns {
            let table = Table(name: "note", columns: [Column(name: name, type: .text)])
            #expect(problem(tested, table)?.contains(name) == true, "\(name)")
            let other = Table(name: "note", columns: [Column(name: name + "_", type: .text)])
            #expect(problem(tested, other) == nil, "\(name)_")
        }
    }

    @Test(arguments: TestedFace.all) func aTableMayNotHaveAPathOfTheProtocol(tested: TestedFace) {
        for name in tested.reservedTables {
            #expect(problem(tested, Table(name: name, columns: []))?.contains(name) == true, "\(name)")
            #expect(problem(tested, Table(name: name + "_", columns: [])) == nil, "\(name)_")
        }
    }

    @Test(arguments: TestedFace.all, Policy.allCases)
    func aPolicyIsServedOrNamesItsTable(tested: TestedFace, policy: Policy) {
        let problem = problem(tested, Table(name: "note", policy: policy, columns: []))
        let isServed = policy != .checkBase || tested.servesCheckBase
        #expect(isServed ? problem == nil : problem?.contains("note") == true)
    }
}
