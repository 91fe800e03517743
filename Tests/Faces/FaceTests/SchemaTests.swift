import Gateway
import SyncModel
import Testing

/// What a face says about tables that it cannot serve.
@Suite struct SchemaTests {
    private func problem(_ tested: TestedFace, _ table: Table) -> String? {
        tested.face.problem(with: Schema(tables: [table]))
    }

    private func table(_ name: String = "note", of tested: TestedFace, _ columns: [Column] = []) -> Table {
        Table(name: name, policy: tested.servedPolicies[0], columns: columns)
    }

    @Test(arguments: TestedFace.all) func aColumnMayNotHaveANameOfTheProtocol(tested: TestedFace) {
        for name in tested.reservedColumns {
            let table = self.table(of: tested, [Column(name: name, type: .text)])
            #expect(problem(tested, table)?.contains(name) == true, "\(name)")
            let other = self.table(of: tested, [Column(name: name + "_", type: .text)])
            #expect(problem(tested, other) == nil, "\(name)_")
        }
    }

    @Test(arguments: TestedFace.all) func aTableMayNotHaveAPathOfTheProtocol(tested: TestedFace) {
        for name in tested.reservedTables {
            #expect(problem(tested, table(name, of: tested))?.contains(name) == true, "\(name)")
            #expect(problem(tested, table(name + "_", of: tested)) == nil, "\(name)_")
        }
    }

    @Test(arguments: TestedFace.all, Policy.allCases)
    func aPolicyIsServedOrNamesItsTable(tested: TestedFace, policy: Policy) {
        let problem = problem(tested, Table(name: "note", policy: policy, columns: []))
        let isServed = tested.servedPolicies.contains(policy)
        #expect(isServed ? problem == nil : problem?.contains("note") == true)
    }
}
