import Commands
import LoadTools
import WebTokens

/// What requests with tokens cost beside the same without: two servers take turns.
struct TokenRequests: Figure {
    let name = "token-requests"
    let title = "4 devices sync one change each that another device pulls, and idle pulls, with and without tokens"

    /// Owners, each with a device that syncs and one that pulls.
    private static let pairs = 4
    private static let issuer = "https://issuer.example/"

    func measure(_ bench: Bench) async throws -> FigureResult {
        // Short ones, so that both servers meet the same disturbances.
        let rounds = bench.scale.pick(1, 80, 200)
        let changes = bench.scale.pick(3, 40, 40)
        // RSA keys of 2048 bits, as issuers have them.
        guard let key = SigningKey(generating: .rs256, id: "key") else { throw LoadFailure("no key could be made") }
        let keys = try bench.folder.write(
            String(decoding: SigningKey.jwks([key]), as: UTF8.self), to: name + "-keys.json")
        let tokens = [
            "--auth", "jwt", "--auth.jwks-file", keys, "--auth.issuer", Self.issuer, "--auth.audience", "weir",
        ]
        return try await bench.withServer(name + "-none", in: nil) { plain in
            try await bench.withServer(name + "-jwt", in: nil, flags: tokens) { secured in
                let owners = Owners.spread(Self.pairs)
                var sides = [
                    Side(server: plain, owners: owners, key: nil), Side(server: secured, owners: owners, key: key),
                ]
                var (syncs, pulls): ([[Cost]], [[Cost]]) = ([], [])
                let meter = try Meter([plain.process, secured.process])
                let total = 2 * (rounds + 1) * Self.pairs * changes
                return try await bench.showing(name, total: total, unit: "changes") { bar in
                    for round in 0...rounds {
                        // Each of the two is the first in every second round.
                        for index in round.isMultiple(of: 2) ? [0, 1] : [1, 0] {
                            let (sync, pull) = try await sides[index].play(changes, bar)
                            // The first round warms up.
                            guard round > 0 else { continue }
                            if syncs.count < round {
                                syncs.append([sync, sync])
                                pulls.append([pull, pull])
                            }
                            syncs[round - 1][index] = sync
                            pulls[round - 1][index] = pull
                        }
                    }
                    var result = result(syncs, pulls, checks: sides.map { ($0.sent, $0.pulled) })
                    result.othersShare = try meter.usage().othersShare
                    return result
                }
            }
        }
    }

    private func result(
        _ syncs: [[Cost]], _ pulls: [[Cost]], checks: [(sent: Int, pulled: Int)]
    ) -> FigureResult {
        var measures: [Measure] = []
        for (label, costs, target) in [("change", syncs, Measure.Target.atMost(1.03)), ("idle_pull", pulls, nil)] {
            for (index, side) in ["none", "jwt"].enumerated() {
                measures.append(
                    Measure("\(label)_\(side)", Samples(costs.map { $0[index].microseconds }), "us"))
                measures.append(
                    Measure("\(label)_cpu_\(side)", Samples(costs.map { $0[index].cpuMicroseconds }), "us"))
            }
            measures.append(
                Measure(
                    "\(label)_ratio", Samples(costs.map { $0[1].microseconds / $0[0].microseconds }), "", target: target
                ))
            measures.append(
                Measure("\(label)_cpu_ratio", Samples(costs.map { $0[1].cpuMicroseconds / $0[0].cpuMicroseconds }), ""))
        }
        return FigureResult(
            measures: measures,
            checks: zip(["none", "jwt"], checks).map {
                Check(name: "changes pulled, \($0)", expected: $1.sent, found: $1.pulled)
            })
    }

    /// Of one change or pull.
    private struct Cost {
        let microseconds: Double
        /// Of the server.
        let cpuMicroseconds: Double

        init(_ count: Int, seconds: Double, _ usage: Usage) {
            microseconds = seconds * 1_000_000 / Double(count)
            cpuMicroseconds = Double(usage.serverCPU) / 1000 / Double(count)
        }
    }

    /// A server and the devices that use it.
    private struct Side {
        let server: ServerProcess
        private let writers: [Requests]
        private let readers: [Requests]
        private var nextBatch = 1
        private(set) var sent = 0
        private(set) var pulled = 0

        /// - Parameter key: signs the devices' tokens; `nil`: they have none.
        init(server: ServerProcess, owners: [String], key: SigningKey?) {
            self.server = server
            func requests(_ owner: String, _ device: String) -> Requests {
                let claims = """
                    {"iss":"\(TokenRequests.issuer)","aud":"weir","sub":"\(owner)","did":"\(device)","exp":4000000000,\
                    "scope":"read write","email":"\(owner)@example.com","name":"A person of this example"}
                    """
                return Requests(owner: owner, device: device, token: key?.token(claims: Array(claims.utf8)))
            }
            writers = owners.map { requests($0, "k1") }
            readers = owners.map { requests($0, "k2") }
        }

        /// Every pair syncs and pulls some changes, one after the other; then the readers pull as often again.
        mutating func play(_ count: Int, _ bar: ProgressBar) async throws -> (sync: Cost, pull: Cost) {
            let (server, writers, readers, first) = (server, writers, readers, nextBatch)
            nextBatch += count
            let meter = try server.meter()
            let start = SystemCall.nanoseconds()
            let ends = try await LoadThreads.run(writers.count) { pair in
                try Self.change(
                    count, from: first, writers[pair], readers[pair], seed: UInt64(pair),
                    LoadConnection(port: server.port),
                    bar)
            }
            let sync = Cost(writers.count * count, seconds: SystemCall.seconds(since: start), try meter.usage())
            sent += writers.count * count
            pulled += ends.reduce(0) { $0 + $1.rows }
            let idle = try server.meter()
            let idleStart = SystemCall.nanoseconds()
            _ = try await LoadThreads.run(writers.count) { pair in
                let connection = try LoadConnection(port: server.port)
                let request = readers[pair].pull(above: ends[pair].floor)
                for _ in 0..<4 * count { try connection.exchange(request, expecting: 200) }
            }
            let pull = Cost(
                4 * writers.count * count, seconds: SystemCall.seconds(since: idleStart), try idle.usage())
            return (sync, pull)
        }

        /// - Returns: how many rows the reader got, and up to where it has everything.
        private static func change(
            _ count: Int, from first: Int, _ writer: Requests, _ reader: Requests, seed: UInt64,
            _ connection: LoadConnection, _ bar: ProgressBar
        ) throws -> (rows: Int, floor: Int) {
            var rows = Workload.Rows(seed: 400 + seed << 32 + UInt64(first))
            var (pulled, head) = (0, 0)
            // What the rounds before left.
            var floor = try connection.exchange(reader.pull(limit: 10_000)) { status, body in
                try LoadConnection.check(status, body, 200)
                return try PullAnswer(body).head
            }
            for batch in first..<first + count {
                try connection.exchange(writer.sync(batch: batch, of: [rows.next()], above: head)) { status, body in
                    try LoadConnection.check(status, body, 200)
                    head = try PullAnswer(body).head
                }
                try connection.exchange(reader.pull(above: floor, limit: 1000)) { status, body in
                    try LoadConnection.check(status, body, 200)
                    pulled += PullAnswer.rows(in: body)
                    floor = try PullAnswer(body).head
                }
                bar.advance(by: 1)
            }
            return (pulled, floor)
        }
    }
}
