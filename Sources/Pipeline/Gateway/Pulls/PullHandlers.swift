import AsyncPrimitives
import FanOutLink
import HTTP
import JSONText
import SyncModel

/// `POST /v1/pull`, and the pull half of `POST /v1/sync`.
extension GatewayHandler {
    /// Pulls in a task: waits for the outcomes to include, and for new rows if the request is a long poll.
    func pull(_ caller: Caller, _ device: Device, _ envelope: Envelope) async throws -> HTTPResponse {
        let start = clock.now()
        let deadline = start + configuration.outcomeWait
        var leastHeads: [SyncID: TimeStamp] = [:]
        for batch in envelope.include {
            let kept = try await outcomes.keptOutcome(of: batch, device: device, rows: nil, until: deadline)
            guard let outcome = kept else {
                throw Problem(
                    .outcomePending, "no outcome of batch \(batch) is known yet: repeat the pull, or send the batch")
            }
            leastHeads.merge(outcome.heads, uniquingKeysWith: max)
            pending.remove(batch, of: device)
        }
        let page = try page(caller, envelope, leastHeads: leastHeads)
        guard envelope.wait > .zero else {
            return try await read(page, batch: nil, device)
        }
        // Nobody is shown what happens after the end of the credentials.
        var end = clock.now() + envelope.wait
        if let validFor = caller.validFor { end = min(end, start + validFor) }
        return try await longPoll(caller, device, page, until: end)
    }

    /// Responds without reading if no head has moved; `nil` if rows must be read.
    func pullAtOnce(
        _ caller: Caller, _ device: Device, _ envelope: Envelope
    ) throws(Problem) -> HTTPHandlerResult? {
        let page = try page(caller, envelope)
        guard let pages = idlePages(page) else { return nil }
        return respond(with: respond(page, pages, batch: nil, nil), for: caller, device)
    }

    private func longPoll(
        _ caller: Caller, _ device: Device, _ page: PullPage, until deadline: Duration
    ) async throws -> HTTPResponse {
        let wakeup = Wakeup()
        // Subscribed before the first pull, so that no move is missed.
        let subscription = link.subscribe(to: page.request.owners.map(\.owner)) { _, _ in wakeup.signal() }
        defer { subscription.cancel() }
        polls.add(wakeup, of: device)
        defer { polls.remove(wakeup) }
        let timer = Task { [clock] in
            // Cancelled when the poll ends first.
            do { try await clock.sleep(deadline) } catch { return }
            wakeup.signal()
        }
        defer { timer.cancel() }
        while true {
            let pages: [OwnerPage]
            var reservation: ResponseReservation?
            if let idle = idlePages(page) {
                pages = idle
            } else {
                (pages, reservation) = try await readReserved(page, device)
            }
            if page.hasNews(pages) || polls.isStopping || clock.now() >= deadline {
                return try await reserving(respond(page, pages, batch: nil, reservation), for: caller)
            }
            reservation = nil
            await wakeup.waitUnlessCancelled()
            try Task.checkCancellation()
            try checkRevoked(device)
        }
    }

    private func idlePages(_ page: PullPage) -> [OwnerPage]? {
        var pages: [OwnerPage] = []
        pages.reserveCapacity(page.request.owners.count)
        for owner in page.request.owners {
            guard let idle = link.idlePage(owner) else { return nil }
            pages.append(idle)
        }
        return pages
    }

    func page(
        _ caller: Caller, _ envelope: Envelope, held: [SyncID: Set<TimeStamp>] = [:],
        leastHeads: [SyncID: TimeStamp] = [:]
    ) throws(Problem) -> PullPage {
        let version = if let ahead = versionAhead(in: envelope) { ahead } else { try newestSchema().version.hash }
        let server = PullPage.Server(epoch: history.epoch, schemaVersion: version)
        return PullPage(
            caller: caller, envelope: envelope, server: server, held: held, leastHeads: leastHeads,
            maximumBytes: configuration.pageBytes)
    }

    /// Reads a page and responds with it.
    func read(
        _ page: PullPage, batch: BatchOutcome?, _ device: Device, isRefusable: Bool = true
    ) async throws -> HTTPResponse {
        let (pages, reservation) = try await readReserved(page, device, isRefusable: isRefusable)
        return respond(page, pages, batch: batch, reservation)
    }

    /// Reads the pages of a pull, after what they may have was reserved.
    private func readReserved(
        _ page: PullPage, _ device: Device, isRefusable: Bool = true
    ) async throws -> ([OwnerPage], ResponseReservation) {
        let deadline = clock.now() + configuration.outcomeWait
        let space = try await reservePage(for: device, until: deadline, isRefusable: isRefusable)
        defer { release(space, of: device) }
        let (pages, reservation) = try await readPages(page, device, in: space, until: deadline)
        if case .few = space.tokens, isRefusable, page.hasMore(pages) {
            // The device pulls again at once, and has tokens for larger pages after it has waited.
            reservation.resize(to: Self.size(of: pages))
            try await delay()
        }
        return (pages, reservation)
    }

    /// Reads the pages of a pull for which a page is reserved.
    ///
    /// While a stream is behind, only what the response has already stays reserved, so that pulls of other owners need not wait
    /// for it.
    ///
    /// - Parameters:
    ///   - bytes: what the response has already, of the space.
    ///   - deadline: how long streams are waited for.
    /// - Returns: the pages, and the reservation for them.
    func readPages(
        _ page: PullPage, _ device: Device, in space: PageSpace, keeping bytes: Int = 0, until deadline: Duration
    ) async throws -> ([OwnerPage], ResponseReservation) {
        let limits = space.tokens.limits
        guard limits.rows > 0 else {
            space.reservation.resize(to: bytes)
            return ([], space.reservation)
        }
        var request = page.request
        request.limit = min(request.limit, limits.rows)
        request.maximumBytes = max(1, min(request.maximumBytes - bytes, limits.bytes))
        do {
            return (try await pull(request, .zero, device), space.reservation)
        } catch FanOutError.notReady {
            space.reservation.resize(to: bytes)
        }
        // One row shows that the streams are ready, as well as all.
        var probe = request
        probe.limit = 1
        probe.maximumBytes = 1
        _ = try await link.pull(probe, within: clock.remaining(until: deadline))
        let whole = try await reserve(
            configuration.pageBytes, for: device.caller, until: clock.now() + configuration.outcomeWait)
        return (try await pull(request, clock.remaining(until: deadline), device), whole)
    }

    private func pull(_ request: PagePull, _ limit: Duration, _ device: Device) async throws -> [OwnerPage] {
        let pages = try await link.pull(request, within: limit)
        let size = pages.size
        rates.pulled(rows: size.rows, ofBytes: size.bytes, by: device)
        return pages
    }

    func respond(
        _ page: PullPage, _ pages: [OwnerPage], batch: BatchOutcome?, _ reservation: ResponseReservation?
    ) -> HTTPResponse {
        var writer = JSONWriter(capacity: Self.size(of: pages))
        writer.object { writer in
            page.writeHead(to: &writer)
            if let batch {
                writer.name("batch")
                batch.write(to: &writer)
            }
            page.write(pages, to: &writer)
        }
        var response = HTTPResponse.json(200, writer.take())
        response.reservation = reservation
        return response
    }

    /// About the bytes of a response with these pages.
    private static func size(of pages: [OwnerPage]) -> Int {
        pages.reduce(1024) { size, page in
            if case .rows(let rows) = page.content { size + rows.json.count + 96 * rows.entries.count } else { size }
        }
    }
}
