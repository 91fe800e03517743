import LoadTools

/// The rows that all protocols download, which a device of the client contract has written.
struct FaceHistory: Sendable {
    /// As many rows as an answer has by default.
    static let page = 1000

    let owners: [String]
    /// Of each owner, all above its first position.
    let rowCount: Int
    /// Of each owner, below the first rows and after each ``page``.
    let positions: [[Int]]
    /// The newest row.
    let heads: [Int]

    static func make(of owners: [String], rows rowCount: Int, on server: ServerProcess) async throws -> FaceHistory {
        let port = server.port
        let ends = try await LoadThreads.run(owners.count) { index in
            let connection = try LoadConnection(port: port)
            let requests = Requests(owner: owners[index], device: "writer")
            var rows = Workload.Rows(seed: 900 + UInt64(index))
            // The first are written again, so that all rows are above their position: some protocols have only all.
            let first = (0..<100).map { _ in rows.next() }
            return try (0...rowCount / 100).map { batch in
                var changes: [UInt8] = []
                Workload.write(batch < 2 ? first : (0..<100).map { _ in rows.next() }, to: &changes)
                let upload = requests.upload(batch: batch + 1, changes: changes, waitSeconds: 30)
                return try connection.exchange(upload) { status, body in
                    try LoadConnection.check(status, body, 200)
                    return body.lastRange(of: #""timeStamp":"#).map { body.number(from: $0.upperBound) } ?? 0
                }
            }
        }
        return FaceHistory(
            owners: owners, rowCount: rowCount,
            positions: ends.map { end in stride(from: 0, to: end.count - 1, by: page / 100).map { end[$0] } },
            heads: ends.map { $0.last ?? 0 })
    }
}

/// A protocol with the devices that speak it: one of each owner uploads, and one of each owner of the history downloads.
struct FaceSide {
    let contract: FaceProtocol
    let owners: [String]
    private let history: FaceHistory
    /// For answers of many rows.
    private let long: FaceHistory
    private let server: ServerProcess
    private var writers: [FaceWriter]
    private(set) var uploaded = 0
    /// The rows that downloads had to have, and those that they had.
    private(set) var expected = 0
    private(set) var downloaded = 0

    init(
        _ contract: FaceProtocol, _ ownerCount: Int, _ history: FaceHistory, long: FaceHistory, _ server: ServerProcess
    ) {
        self.contract = contract
        self.history = history
        self.long = long
        self.server = server
        owners = Owners.spread(ownerCount, prefix: "\(contract)")
        writers = owners.enumerated().map { index, owner in
            FaceWriter(contract, Requests(owner: owner, device: "k1"), seed: UInt64(index))
        }
    }

    private func reader(_ owner: String) -> Requests { Requests(owner: owner, device: "reader-\(contract)") }

    /// Lets the readers download everything, as far as the protocol's server must know of it.
    func prepare() async throws {
        let (contract, history, port) = (contract, history, server.port)
        let readers = history.owners.map(reader)
        _ = try await LoadThreads.run(readers.count) { index in
            let connection = try LoadConnection(port: port)
            for request in contract.preparation(readers[index], head: history.heads[index]) {
                try connection.exchange(request, expecting: 200)
            }
        }
    }

    /// Does some work at all owners at once.
    mutating func perform(_ work: FaceWorkKind, times count: Int) async throws -> FaceCost {
        let (contract, history, port) = (contract, history, server.port)
        switch work {
        case .upload1, .upload100:
            let size = work == .upload1 ? 1 : 100
            for index in writers.indices { writers[index].plan(count, of: size) }
            let planned = writers
            let cost = try await cost(count) { index in
                var writer = planned[index]
                try writer.upload(on: LoadConnection(port: port))
                return writer
            } results: {
                $0.writers = $1
            }
            uploaded += owners.count * count * size
            return cost
        case .download, .whole, .idle, .devices:
            let source = work == .whole ? long : history
            let requests = source.owners.indices.map { index in
                let (reader, positions) = (reader(source.owners[index]), source.positions[index])
                switch work {
                case .devices: return contract.devices(reader, at: source.heads[index])
                case .whole: return contract.everything(reader, above: positions)
                case .download: return [contract.download(reader, above: positions[0], limit: FaceHistory.page)]
                default: return [contract.download(reader, above: source.heads[index], limit: FaceHistory.page)]
                }
            }
            return try await cost(count) { index in
                let connection = try LoadConnection(port: port)
                var rows = 0
                for request in repeatElement(requests[index], count: count).joined() {
                    try connection.exchange(request) { status, body in
                        try LoadConnection.check(status, body, 200)
                        rows += contract.rows(in: body)
                    }
                }
                return rows
            } results: { side, rows in
                side.downloaded += rows.reduce(0, +)
                if work == .download || work == .whole { side.expected += count * rows.count * source.rowCount }
            }
        }
    }

    private mutating func cost<Value: Sendable>(
        _ count: Int, _ body: @escaping @Sendable (Int) throws -> Value, results: (inout FaceSide, [Value]) -> Void
    ) async throws -> FaceCost {
        let meter = try server.meter()
        let start = SystemCall.nanoseconds()
        let values = try await LoadThreads.run(owners.count, body)
        let seconds = SystemCall.seconds(since: start)
        let usage = try meter.usage()
        results(&self, values)
        let total = Double(owners.count * count)
        return FaceCost(
            microseconds: seconds * 1_000_000 / total, cpuMicroseconds: Double(usage.serverCPU) / 1000 / total)
    }
}

/// A device that uploads new rows.
struct FaceWriter: Sendable {
    private let contract: FaceProtocol
    private let requests: Requests
    private var rows: Workload.Rows
    private var planned: [[UInt8]] = []
    private var size = 0
    /// Of the next change, and of the next batch.
    private var number = 1
    private var batch = 1
    /// Up to where the server has said that the device has everything.
    private var seen = 0

    init(_ contract: FaceProtocol, _ requests: Requests, seed: UInt64) {
        self.contract = contract
        self.requests = requests
        rows = Workload.Rows(seed: 700 + seed)
    }

    /// Encodes the changes of the next uploads.
    mutating func plan(_ count: Int, of size: Int) {
        self.size = size
        planned = []
        for _ in 0..<count {
            var changes: [UInt8] = []
            for _ in 0..<size {
                if !changes.isEmpty { changes.append(UInt8(ascii: ",")) }
                contract.write(rows.next(), number: number, to: &changes)
                number += 1
            }
            planned.append(changes)
        }
    }

    mutating func upload(on connection: LoadConnection) throws {
        for changes in planned {
            let request = contract.upload(requests, batch: batch, changes, isOne: size == 1, seen: seen)
            batch += 1
            seen = try connection.exchange(request) { status, body in
                try LoadConnection.check(status, body, contract.uploadStatus)
                guard contract.stored(in: body) == size else {
                    throw LoadFailure("not all was stored: \(String(decoding: body.prefix(500), as: UTF8.self))")
                }
                return contract.position(in: body) ?? seen
            }
        }
    }
}
