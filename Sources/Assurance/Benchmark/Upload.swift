import Commands

/// What one connection of the load sends, made beforehand.
struct UploadPlan: Sendable {
    /// Uploads in their order.
    var uploads: [[UInt8]]
    /// Pulls that the server answers once the last uploads can be pulled.
    var last: [[UInt8]]
    /// The changes of each upload.
    let batchSize: Int
}

/// Sends what was planned.
enum Upload {
    /// Sends all plans at once and waits until everything can be pulled; the seconds it took.
    static func run(_ plans: [UploadPlan], to server: ServerProcess, _ bar: ProgressBar) async throws -> Double {
        let port = server.port
        let times = try await LoadThreads.run(plans.count) { index in
            let plan = plans[index]
            let connection = try LoadConnection(port: port)
            let start = SystemCall.nanoseconds()
            for request in plan.uploads {
                try connection.exchange(request, expecting: 202)
                bar.advance(by: plan.batchSize)
            }
            for pull in plan.last { try waitForOutcome(pull, on: connection) }
            return (start: start, end: SystemCall.nanoseconds())
        }
        let start = times.map(\.start).min() ?? 0
        return Double((times.map(\.end).max() ?? 0) - start) / 1e9
    }

    /// Pulls until the batch that the pull includes is there.
    static func waitForOutcome(_ pull: [UInt8], on connection: LoadConnection) throws {
        // Each attempt waits ten seconds in the server.
        for _ in 0..<60 {
            let isThere = try connection.exchange(pull) { status, body in
                if status == 504 { return false }
                try LoadConnection.check(status, body, 200)
                return true
            }
            if isThere { return }
        }
        throw BenchmarkFailure("a batch that was acknowledged could not be pulled within ten minutes")
    }
}
