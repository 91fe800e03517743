import Commands
import LoadTools

/// What work costs through faces beside the same work through the client contract: on one server, which they use in turn.
struct FaceWork: Figure {
    let name = "faces"
    let title = "uploads, downloads and idle downloads of several owners, through faces and through /v1"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let rounds = bench.scale.pick(1, 8, 40)
        // Of each protocol for uploads, and of all for downloads.
        let ownerCount = bench.scale.pick(1, 4, 4)
        // The policy that all protocols allow.
        let schema = Workload.schema(policy: "lastWriteWins")
        return try await bench.withServer(
            name, in: nil, schema: schema, flags: ["--faces", "crud,rest,sqlitenow,tracker"]
        ) { server in
            // As long as a uuid, since every row names its owner twice.
            let owners = Owners.spread(ownerCount, prefix: "0a9f3c52-7d1e-4b86-9c40-5e2d8f71b30")
            let history = try await FaceHistory.make(of: owners, rows: FaceHistory.page, on: server)
            let long = try await FaceHistory.make(
                of: Owners.spread(ownerCount, prefix: "5d31b7e8-04fc-4a29-8be6-71c90a2f4d8"),
                rows: bench.scale.pick(2000, 10_000, 50_000), on: server)
            var sides = FaceProtocol.allCases.map { FaceSide($0, ownerCount, history, long: long, server) }
            for index in sides.indices { try await sides[index].prepare() }
            var costs = FaceCosts()
            let meter = try server.meter()
            return try await bench.showing(name, total: rounds + 1, unit: "rounds") { bar in
                for round in 0...rounds {
                    for work in FaceWorkKind.allCases {
                        // Each is the first in some rounds, and what is compared is done shortly after one another.
                        for turn in sides.indices {
                            let index = (turn + round) % sides.count
                            guard sides[index].contract.does(work) else { continue }
                            let cost = try await sides[index].perform(work, times: work.count(bench.scale))
                            // The first round warms up.
                            if round > 0 { costs.add(cost, of: work, sides[index].contract) }
                        }
                    }
                    bar.advance(by: 1)
                }
                return FigureResult(
                    measures: costs.measures, checks: try await Self.checks(sides, server),
                    othersShare: try meter.usage().othersShare)
            }
        }
    }

    private static func checks(_ sides: [FaceSide], _ server: ServerProcess) async throws -> [Check] {
        var checks: [Check] = []
        for side in sides {
            var stored = 0
            for owner in side.owners { stored += try await Drain.count(of: owner, on: server) }
            checks.append(Check(name: "rows uploaded, \(side.contract)", expected: side.uploaded, found: stored))
            checks.append(
                Check(
                    name: "rows downloaded, \(side.contract)", expected: side.expected, found: side.downloaded))
        }
        return checks
    }
}

/// What is done through each protocol.
enum FaceWorkKind: String, CaseIterable {
    /// One change, up to its outcome.
    case upload1 = "upload_1"
    /// A hundred changes in one request.
    case upload100 = "upload_100"
    /// 1,000 rows of another device above a position.
    case download = "download_1000"
    /// All of many rows, by a new device.
    case whole = "download_all"
    /// Whether there is anything new, where there is nothing.
    case idle
    /// The same, and which devices uploaded.
    case devices

    /// How often each owner does it in a round: long enough for the clock, short enough that all meet the same disturbances.
    func count(_ scale: Scale) -> Int {
        switch self {
        case .upload1: scale.pick(1, 25, 50)
        case .upload100: scale.pick(1, 3, 6)
        case .download: scale.pick(1, 6, 12)
        case .whole: scale.pick(1, 2, 2)
        case .idle: scale.pick(1, 60, 120)
        case .devices: scale.pick(1, 30, 60)
        }
    }
}

/// Of one request.
struct FaceCost: Sendable {
    let microseconds: Double
    /// Of the server.
    let cpuMicroseconds: Double
}

/// The costs of all rounds.
private struct FaceCosts {
    private var costs: [FaceWorkKind: [FaceProtocol: [FaceCost]]] = [:]

    mutating func add(_ cost: FaceCost, of work: FaceWorkKind, _ contract: FaceProtocol) {
        costs[work, default: [:]][contract, default: []].append(cost)
    }

    var measures: [Measure] {
        FaceWorkKind.allCases.flatMap { work in
            FaceProtocol.allCases.flatMap { contract in
                costs[work]?[contract].map { measures(work, contract, $0) } ?? []
            }
        }
    }

    private func measures(_ work: FaceWorkKind, _ contract: FaceProtocol, _ found: [FaceCost]) -> [Measure] {
        let name = work.rawValue
        var measures = [
            Measure("\(name)_\(contract)", Samples(found.map(\.microseconds)), "us"),
            Measure("\(name)_cpu_\(contract)", Samples(found.map(\.cpuMicroseconds)), "us"),
        ]
        guard contract != .v1, let base = costs[work]?[.v1] else { return measures }
        func ratio(_ value: KeyPath<FaceCost, Double>) -> Samples {
            Samples(zip(found, base).map { $0[keyPath: value] / max($1[keyPath: value], .leastNormalMagnitude) })
        }
        measures += [
            Measure("\(name)_ratio_\(contract)", ratio(\.microseconds), "", target: .atMost(1.3)),
            Measure("\(name)_cpu_ratio_\(contract)", ratio(\.cpuMicroseconds), "", target: .atMost(1.3)),
        ]
        return measures
    }
}
