import RecordStore
import SyncModel
import Testing

extension RecordStoreConformance {
    static let commitCases: [ConformanceCase] = [
        ConformanceCase("an empty store has no positions, rows or progress") { harness in
            let partition = PartitionHand(try await harness.open(Sample.first), 7)
            #expect(try await partition.store.position(of: 7) == nil)
            #expect(try await partition.rows([orderRow("a", "x").key], ordinal: 0).isEmpty)
            let key = DeviceKey(owner: owner("owner"), device: device("d"))
            #expect(try await partition.progress(key, batch: 1) == DeviceProgress())
        },
        ConformanceCase("a commit advances its partition only") { harness in
            let store = try await harness.open(Sample.first)
            var first = PartitionHand(store, 0)
            var second = PartitionHand(store, 1)
            try await first.commit([orderRow("a", "x")])
            try await first.commit()
            try await second.commit()
            #expect(try await store.position(of: 0) == first.position)
            #expect(try await store.position(of: 1) == second.position)
            #expect(try await store.position(of: 2) == nil)
            #expect(first.position != second.position)
        },
        ConformanceCase("steps of several partitions are written together") { harness in
            let store = try await harness.open(Sample.first)
            let steps = (0..<5).map { number in
                PartitionHand(store, number).step([orderRow("a", "\(number)", of: "owner \(number)")])
            }
            try await store.commit(steps)
            for step in steps {
                #expect(try await store.position(of: step.partition) == step.position)
                try await PartitionHand(store, step.partition).expect(step.rows)
            }
        },
        ConformanceCase("a position that differs in any part fences, and nothing is written") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            try await partition.commit([orderRow("a", "kept")])
            let stands = try #require(partition.position)
            var wrong = Array(repeating: stands, count: 6)
            wrong[0].orderedOffset += 1
            wrong[1].state.nextOffset -= 1
            wrong[2].state.timeStamp = TimeStamp(2)
            wrong[3].state.schemaOrdinal += 1
            wrong[4].state.uploads[0] = UploadProgress(offset: 0, part: 2)
            wrong[5].state.uploads[9] = UploadProgress(offset: 0, part: 0)
            let key = DeviceKey(owner: owner("owner"), device: device("d"))
            for expected in wrong.map(Optional.some) + [nil] {
                partition.position = expected
                let step = partition.step(
                    [orderRow("a", "lost"), orderRow("b", "lost")], [StoredOutcome(key: key, outcome: outcome(1))])
                await expectError(.fenced) { try await partition.store.commit([step]) }
            }
            #expect(try await partition.store.position(of: 0) == stands)
            #expect(try await partition.rows([orderRow("a", "").key, orderRow("b", "").key]).count == 1)
            try await partition.expect([orderRow("a", "kept")])
            #expect(try await partition.progress(key, batch: 1) == DeviceProgress())
        },
        ConformanceCase("a step that expects a position is fenced by a partition without one") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            partition.position = StoredPosition()
            await expectError(.fenced) { try await partition.store.commit([partition.step()]) }
            #expect(try await partition.store.position(of: 0) == nil)
        },
        ConformanceCase("one fenced step rolls back the others of its call") { harness in
            let store = try await harness.open(Sample.first)
            var fenced = PartitionHand(store, 1)
            try await fenced.commit()
            let stale = PartitionHand(store, 1)
            let row = orderRow("a", "lost", of: "first")
            await expectError(.fenced) {
                try await store.commit([PartitionHand(store, 0).step([row]), stale.step()])
            }
            #expect(try await store.position(of: 0) == nil)
            #expect(try await store.position(of: 1) == fenced.position)
            #expect(try await PartitionHand(store, 0).rows([row.key]).isEmpty)
        },
        ConformanceCase("a worker is fenced when another one has advanced its partition") { harness in
            var old = PartitionHand(try await harness.open(Sample.first))
            try await old.commit([orderRow("a", "old")])
            var new = PartitionHand(try await harness.open(Sample.first))
            new.position = try await new.store.position(of: 0)
            #expect(new.position == old.position)
            try await new.commit([orderRow("a", "new", timeStamp: 2)])
            let step = old.step([orderRow("a", "late", timeStamp: 3)])
            await expectError(.fenced) { try await old.store.commit([step]) }
            try await old.expect([orderRow("a", "new", timeStamp: 2)])
        },
        ConformanceCase("concurrent calls succeed and fail independently") { harness in
            let store = try await harness.open(Sample.first)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<16 {
                    group.addTask {
                        var partition = PartitionHand(store, number)
                        for round in 1...20 {
                            let row = orderRow(
                                "a", "\(round)", of: "owner \(number)", timeStamp: Int64(number * 100 + round))
                            if round % 5 == 0 {
                                let stale = PartitionHand(store, number).step([
                                    orderRow("b", "lost", of: "owner \(number)")
                                ])
                                await expectError(.fenced) { try await store.commit([stale]) }
                            }
                            if round % 7 == 0 {
                                // NULL in a column that takes none.
                                let bad = OrderedRow(row, values: values(["null", "1", "null"]))
                                await expectError(.refusedRow(row.key)) {
                                    try await store.commit([partition.step([bad])])
                                }
                            }
                            try await partition.commit([row])
                        }
                        #expect(try await store.position(of: number) == partition.position)
                        let last = orderRow("a", "20", of: "owner \(number)", timeStamp: Int64(number * 100 + 20))
                        let lost = orderRow("b", "", of: "owner \(number)").key
                        #expect(try await partition.rows([last.key, lost]) == [last.key: last])
                    }
                }
                try await group.waitForAll()
            }
        },
        ConformanceCase("a row that the table refuses is named, and its whole call is rolled back") { harness in
            let partition = PartitionHand(try await harness.open(Sample.first))
            let good = orderRow("good", "x")
            let bad = OrderedRow(orderRow("bad", "x", timeStamp: 2), values: values(["null", "1", "null"]))
            await expectError(.refusedRow(bad.key)) { try await partition.store.commit([partition.step([good, bad])]) }
            #expect(try await partition.store.position(of: 0) == nil)
            #expect(try await partition.rows([good.key, bad.key]).isEmpty)
        },
        ConformanceCase("a closed store fails with closed, and can be closed again") { harness in
            let partition = PartitionHand(try await harness.open(Sample.first))
            await partition.store.close()
            await partition.store.close()
            await expectError(.closed) { _ = try await partition.store.position(of: 0) }
            await expectError(.closed) { _ = try await partition.rows([orderRow("a", "x").key]) }
            await expectError(.closed) { try await partition.store.commit([partition.step()]) }
            await expectError(.closed) { try await partition.store.prepare(Sample.first) }
            await expectError(.closed) { try await partition.store.snapshot(of: 0, schemaOrdinal: 1) { _ in } }
        },
    ]
}

extension OrderedRow {
    /// The row with other values.
    init(_ row: OrderedRow, values: RowValues) {
        self = row
        self.values = values
    }
}
