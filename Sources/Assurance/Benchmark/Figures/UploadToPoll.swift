import Commands
import LoadTools

/// How long a change takes until another device that waits has it.
struct UploadToPoll: Figure {
    let name = "latency"
    let title = "one change uploaded until another device's long poll has it, at 100 changes a second"

    /// Owners, each with a device that uploads and one that waits.
    private static let pairs = 4
    /// Nanoseconds between two uploads of a pair: 25 a second.
    private static let interval: Int64 = 40_000_000

    func measure(_ bench: Bench) async throws -> FigureResult {
        let seconds = bench.scale.pick(1, 20, 120)
        let count = seconds * 25
        return try await bench.withServer(name) { server in
            try await bench.showing(name, total: Self.pairs * count, unit: "changes") { bar in
                let owners = Owners.spread(Self.pairs)
                let port = server.port
                let meter = try server.meter()
                // Time for the threads to start and for every poll to wait.
                let start = SystemCall.nanoseconds() + 500_000_000
                let times = try await LoadThreads.run(2 * Self.pairs) { index in
                    let pair = index / 2
                    let connection = try LoadConnection(port: port)
                    // Spread over the interval: devices do not send at the same moment.
                    let schedule = Schedule(
                        start: start + Int64(pair) * Self.interval / Int64(Self.pairs), interval: Self.interval,
                        count: count)
                    if index % 2 == 0 {
                        return try upload(
                            schedule, Requests(owner: owners[pair], device: "k1"), seed: UInt64(pair), connection)
                    }
                    return try poll(schedule, Requests(owner: owners[pair], device: "k2"), connection, bar)
                }
                // The first second warms up.
                let warm = seconds > 1 ? 25 : 0
                let polls = Samples(stride(from: 1, to: 2 * Self.pairs, by: 2).flatMap { times[$0].dropFirst(warm) })
                let uploads = Samples(stride(from: 0, to: 2 * Self.pairs, by: 2).flatMap { times[$0].dropFirst(warm) })
                var result = FigureResult(measures: [
                    Measure("poll_p50", polls.median, "ms", target: .atMost(bench.cluster == nil ? 4 : 20)),
                    Measure("poll_p99", polls.quantile(0.99), "ms", target: .atMost(bench.cluster == nil ? 15 : 100)),
                    Measure("upload_p50", uploads.median, "ms"),
                    Measure("upload_p99", uploads.quantile(0.99), "ms"),
                ])
                result.othersShare = try meter.usage().othersShare
                for pair in 0..<Self.pairs {
                    result.checks.append(
                        Check(name: "rows of an owner", expected: count, found: times[2 * pair + 1].count))
                }
                return result
            }
        }
    }

    /// When the changes of a pair are due.
    private struct Schedule {
        let start: Int64
        let interval: Int64
        let count: Int

        func moment(_ number: Int) -> Int64 { start + Int64(number) * interval }

        /// Milliseconds since a change was due, which includes the time that the change before delayed it.
        func delay(of number: Int) -> Double { 1000 * SystemCall.seconds(since: moment(number)) }
    }

    private func upload(
        _ schedule: Schedule, _ requests: Requests, seed: UInt64, _ connection: LoadConnection
    ) throws -> [Double] {
        var rows = Workload.Rows(seed: 300 + seed)
        let uploads = (0..<schedule.count).map { requests.upload(batch: $0 + 1, of: [rows.next()]) }
        return try uploads.enumerated().map { number, request in
            SystemCall.wait(until: schedule.moment(number))
            try connection.exchange(request, expecting: 202)
            return schedule.delay(of: number)
        }
    }

    /// Polls until all have arrived; returns the milliseconds that each took.
    private func poll(
        _ schedule: Schedule, _ requests: Requests, _ connection: LoadConnection, _ bar: ProgressBar
    ) throws -> [Double] {
        var delays: [Double] = []
        var floor = 0
        while delays.count < schedule.count {
            try connection.exchange(requests.pull(above: floor, limit: 1000, waitSeconds: 20)) { status, body in
                try LoadConnection.check(status, body, 200)
                // Rows arrive in the order in which they were uploaded.
                let rows = PullAnswer.rows(in: body)
                for _ in 0..<rows { delays.append(schedule.delay(of: delays.count)) }
                let answer = try PullAnswer(body)
                if !answer.hasMore { floor = answer.head }
                bar.advance(by: rows)
            }
        }
        return delays
    }
}
