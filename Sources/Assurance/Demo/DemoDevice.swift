import Foundation
import LocalTables
import WeirClient
import WeirTesting

/// A device whose user edits at random, and goes off and on line.
struct DemoDevice: Sendable {
    let number: Int
    let device: TestDevice

    /// What the view shows of it.
    func line() async throws -> DemoView.Line {
        let status = await device.weir.currentStatus
        return DemoView.Line(
            name: device.name, isOnline: device.network.isOnline, phase: "\(status.phase)",
            pending: status.pendingRows, rows: try await device.content().count,
            error: device.network.isOnline ? status.lastError?.description : nil)
    }

    /// Edits until the task is cancelled.
    func edit(_ tables: LocalTables, _ seed: UInt64, _ latencies: LatencyBook) async throws {
        let random = TestRandom(seed: seed &* 0x9E37_79B9 &+ UInt64(number))
        var edits = RandomEdits(tables, device: number, random: random)
        while true {
            try await Task.sleep(for: .milliseconds(edits.number(in: 50...700)))
            switch edits.number(in: 0...99) {
            case ..<4 where device.network.isOnline: device.network.goOffline()
            case ..<12 where !device.network.isOnline:
                device.network.goOnline()
                await device.weir.nudge()
            default:
                let edit = edits.next()
                let isOnline = device.network.isOnline
                try await device.write(edit.sql, edit.values)
                latencies.wrote(edit.mark, by: number, isOnline: isOnline)
            }
        }
    }

    /// Reports what the device's file has, until the task is cancelled.
    func observe(_ tables: LocalTables, _ latencies: LatencyBook) async throws {
        let queries = tables.tables.compactMap { table in
            RandomEdits.markColumn(of: table).map { "SELECT \(quoted($0)) FROM \(quoted(table.name))" }
        }
        let weir = await device.weir
        try await withThrowingTaskGroup(of: Void.self) { group in
            for query in queries {
                group.addTask {
                    for try await rows in weir.observe(query) {
                        latencies.saw(rows.compactMap { $0.values[0].string }, at: number)
                    }
                }
            }
            while try await group.next() != nil {}
        }
    }
}
