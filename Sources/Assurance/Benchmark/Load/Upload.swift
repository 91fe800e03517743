import Commands
import LoadTools

/// The requests of one connection, encoded before the time is measured.
struct UploadPlan: Sendable {
    var uploads: [[UInt8]]
    /// Pulls that the server answers once the last uploads can be pulled.
    var last: [[UInt8]]
    /// Changes of each upload.
    let batchSize: Int
}

enum Upload {
    /// Sends all plans at the same time and waits until everything can be pulled; returns the seconds it took.
    static func run(_ plans: [UploadPlan], to server: ServerProcess, _ bar: ProgressBar) async throws -> Double {
        let port = server.port
        return try await LoadThreads.run(plans.count) { index in
            let plan = plans[index]
            let connection = try LoadConnection(port: port)
            let start = SystemCall.nanoseconds()
            for request in plan.uploads {
                try connection.exchange(request, expecting: 202)
                bar.advance(by: plan.batchSize)
            }
            for pull in plan.last { try waitForOutcome(pull, on: connection) }
            return TimeSpan(start: start, end: SystemCall.nanoseconds())
        }.seconds
    }

    /// Repeats a pull until the server has the batch that it includes.
    static func waitForOutcome(_ pull: [UInt8], on connection: LoadConnection) throws {
        // Each attempt waits ten seconds in the server.
        for _ in 0..<60 {
            let hasBatch = try connection.exchange(pull) { status, body in
                if status == 504 { return false }
                try LoadConnection.check(status, body, 200)
                return true
            }
            if hasBatch { return }
        }
        throw LoadFailure("a batch that was acknowledged could not be pulled within ten minutes")
    }
}
