import HTTP
import SyncModel
import Synchronization

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
                return self.respond(to: Problem(error))
            }
        }
    }

    /// As ``inTask(_:)``, and shows nothing to a device that was revoked meanwhile.
    func inTask(
        of device: Device, _ work: @escaping @Sendable () async throws -> HTTPResponse
    ) -> HTTPHandlerResult {
        inTask {
            let response = try await work()
            try self.checkRevoked(device)
            return response
        }
    }

    /// Reserves what a page may have, before it is read.
    func reservePage(
        of bytes: Int? = nil, for caller: Caller, until deadline: Duration
    ) async throws(Problem) -> ResponseReservation {
        do throws(ResponseBudget.Refusal) {
            return try await responseBudget.reserve(bytes ?? configuration.pageBytes, for: caller.syncID.text) {
                [clock] in
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
        response.reservation = try await reservePage(
            of: count, for: caller, until: deadline ?? clock.now() + configuration.outcomeWait)
        return response
    }

    /// Responds at once, or in a task once the bytes of a large response are reserved.
    func respond(with response: HTTPResponse, for caller: Caller, _ device: Device? = nil) -> HTTPHandlerResult {
        if response.countedBytes == 0 { return .response(response) }
        return inTask {
            let response = try await self.reserving(response, for: caller)
            if let device { try self.checkRevoked(device) }
            return response
        }
    }

    var tooManyWaiting: Problem {
        Problem(.overloaded, "\(configuration.maxWaiting) requests are waiting already")
    }
}
