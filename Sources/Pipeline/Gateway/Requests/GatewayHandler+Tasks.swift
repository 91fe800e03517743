import HTTP
import SyncModel
import Synchronization

/// What a page may have that is about to be read.
struct PageSpace: Sendable {
    /// Of a page of the largest size, since the first row is read whatever it has.
    let reservation: ResponseReservation
    let tokens: PageTokens
}

/// Requests that wait, and the space of what they are answered.
extension GatewayHandler {
    var waitingCount: Int { waiting.load(ordering: .relaxed) }

    /// Runs work that waits in a task; refuses it if `maxWaiting` requests wait already.
    func inTask(_ work: @escaping @Sendable () async throws -> HTTPResponse) -> HTTPHandlerResult {
        // Counted in the task, because a task whose client has disconnected may never run.
        if waitingCount >= configuration.maxWaiting { return .response(respond(to: tooManyWaiting)) }
        return .task {
            let count = self.waiting.wrappingAdd(1, ordering: .relaxed).newValue
            defer { self.waiting.wrappingSubtract(1, ordering: .relaxed) }
            guard count <= self.configuration.maxWaiting else { return self.respond(to: self.tooManyWaiting) }
            do {
                return try await work()
            } catch {
                return self.respond(to: await self.delayed(error))
            }
        }
    }

    /// Responds to a request that is refused at once, after the delay of its refusal.
    func refuse(_ problem: Problem) -> HTTPHandlerResult {
        isDelayed(problem, among: waitingCount + 1) ? inTask { throw problem } : .response(respond(to: problem))
    }

    /// The problem of an error; waits before a refusal whose client has reached a rate.
    ///
    /// One that repeats its requests at once would else cost more by what is refused than by what is done.
    func delayed(_ error: any Error) async -> Problem {
        let problem = Problem(error)
        guard problem.code == .rateLimited else { return problem }
        // Cancelled when the client has gone.
        do { try await delay() } catch { return problem }
        return problem
    }

    /// - Parameter waiting: the requests that wait, with this one.
    func isDelayed(_ problem: Problem, among waiting: Int) -> Bool {
        problem.code == .rateLimited && mayDelay(among: waiting)
    }

    /// Waits before a response whose client would send the next request at once, if it has reached a rate.
    func delay() async throws {
        if mayDelay(among: waitingCount) { try await clock.sleep(clock.now() + configuration.refusalDelay) }
    }

    private func mayDelay(among waiting: Int) -> Bool {
        configuration.refusalDelay > .zero && !polls.isStopping && waiting <= configuration.maxWaiting / 2
    }

    /// As ``inTask(_:)``, and shows nothing to a device that was revoked meanwhile.
    func inTask(
        of device: Device, _ work: @escaping @Sendable () async throws -> HTTPResponse
    ) -> HTTPHandlerResult {
        inTask {
            let response = try await work()
            self.rates.pulled(response.countedBytes, by: device)
            try self.checkRevoked(device)
            return response
        }
    }

    /// Reserves what a page may have, before it is read: of the memory, and of what the device may pull.
    ///
    /// A device that may not pull as much has a small page, so that changes are not refused for what was pulled, and a first sync becomes
    /// slower and does not fail.
    ///
    /// - Parameter isRefusable: `false` where the response is also that to changes; then the page may have no row.
    /// - Returns: must be passed to ``release(_:of:)``.
    func reservePage(
        for device: Device, until deadline: Duration, isRefusable: Bool = true
    ) async throws(Problem) -> PageSpace {
        let bytes = configuration.pageBytes
        let reserved = try await reserve(bytes, for: device.caller, until: deadline)
        let tokens = try rates.hold(bytes, for: device, isRefusable: isRefusable)
        return PageSpace(reservation: reserved, tokens: tokens)
    }

    /// Gives back what the device may pull, once the page is read; the memory is free once it is sent.
    func release(_ space: PageSpace, of device: Device) { rates.giveBack(space.tokens, to: device) }

    /// Reserves what a response may have in memory.
    func reserve(
        _ bytes: Int, for caller: SyncID, until deadline: Duration
    ) async throws(Problem) -> ResponseReservation {
        do throws(ResponseBudget.Refusal) {
            return try await responseBudget.reserve(bytes, for: caller.text) { [clock] in
                try await clock.sleep(deadline)
            }
        } catch {
            throw Problem(.overloaded, "the responses that clients have not read yet have reached their limit")
        }
    }

    /// Reserves the bytes of a response that is made already, where they count and none are reserved yet.
    ///
    /// - Parameter deadline: by default, `outcomeWait` from now.
    func reserving(
        _ response: HTTPResponse, for caller: Caller, until deadline: Duration? = nil
    ) async throws(Problem) -> HTTPResponse {
        let count = response.countedBytes
        guard count > 0, response.reservation == nil else { return response }
        var response = response
        response.reservation = try await reserve(
            count, for: caller.syncID, until: deadline ?? clock.now() + configuration.outcomeWait)
        return response
    }

    /// Responds at once, or in a task once the bytes of a large response are reserved.
    func respond(with response: HTTPResponse, for caller: Caller, _ device: Device? = nil) -> HTTPHandlerResult {
        if response.countedBytes == 0 { return .response(response) }
        let work = { @Sendable in try await self.reserving(response, for: caller) }
        return device.map { inTask(of: $0, work) } ?? inTask(work)
    }

    var tooManyWaiting: Problem {
        Problem(.overloaded, "\(configuration.maxWaiting) requests are waiting already")
    }
}
