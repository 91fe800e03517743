import ChangeLog
import DeviceRegistry
import FanOutLink
import HTTP
import JSON
import SyncModel
import Synchronization

/// The session of one request to a face.
final class GatewaySession<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: FaceSession {
    let handler: GatewayHandler<Log, Link, Auth>
    let caller: Caller
    let device: Device
    let schema: SchemaHistory.Entry
    /// What the names of the face's positions begin with.
    private let scope: String
    /// What the response may have in memory besides a page of a stream.
    private let reservation = Mutex<ResponseReservation?>(nil)
    /// What a response that is sent in pieces has in memory until it ends.
    private let reservationOfPieces = Mutex<ResponseReservation?>(nil)
    /// Whether rows are read however much the device has pulled: some are read already, or changes are made, which a refusal would repeat.
    private let mayRead = Atomic<Bool>(false)

    init(
        _ handler: GatewayHandler<Log, Link, Auth>, _ caller: Caller, _ device: Device, _ schema: SchemaHistory.Entry,
        of face: any Face
    ) {
        self.handler = handler
        self.caller = caller
        self.device = device
        self.schema = schema
        scope = face.prefix + "/"
    }

    var limits: SyncLimits { handler.limits }
    var epoch: String { handler.history.epoch }
    var now: Int64 { handler.devices?.now() ?? GatewayDevices.systemTime() }

    private var hasReservation: Bool { reservation.withLock { $0 != nil } }

    func takeReservation() -> ResponseReservation? { reservation.withLock { $0.take() } }

    func parse<Result>(
        _ body: HTTPBody, _ read: (borrowing JSONValue) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        try handler.parsers.parse(body, read)
    }

    // MARK: Changes

    func submit(_ batch: FaceBatch) async throws -> FaceOutcome {
        let (count, isAtomic) = (batch.count, batch.isAtomic)
        let (refusedCount, refusedBytes) = (batch.refusedCount, batch.refusedBytes)
        if count == 0, refusedCount == 0 { return FaceOutcome(results: [], head: .zero) }
        let version = batch.version(upTo: schema, in: handler.schemas()).version
        let maximum = limits.outcome.maxChanges
        guard batch.limitedCount <= maximum, count <= OutcomeLimits.greatest.maxChanges else {
            throw Problem(.batchTooLarge, "\(batch.limitedCount) changes, at most \(maximum) are allowed")
        }
        let json = batch.finish()
        guard json.count <= limits.maxBatchBytes else {
            throw Problem(.batchTooLarge, "\(json.count) bytes, at most \(limits.maxBatchBytes) are allowed")
        }
        let cost = RateCost(
            changes: count + refusedCount, bytes: json.count + refusedBytes, requests: 0,
            logged: count == 0 ? 0 : RateCost.logged(bytes: json.count, changes: count, of: caller))
        try handler.rates.take(cost, of: device.caller, device)
        mayRead.store(true, ordering: .relaxed)
        if count == 0 { return FaceOutcome(results: [], head: .zero) }
        handler.noteUpload(device)
        let envelope = Envelope(changes: json, count: count, isAtomic: isAtomic, schemaVersion: version.hash)
        do {
            return try await outcome(of: try await handler.appendBatch(caller, device, envelope))
        } catch let problem as Problem where problem.code == .outcomePending {
            throw Problem(
                .outcomePending, status: 503, "the changes are durable, and were not ordered in time: send them again",
                retryAfter: 1)
        }
    }

    private func outcome(of upload: UploadReference) async throws -> FaceOutcome {
        let wait = handler.configuration.outcomeWait
        var outcome = try await handler.outcome(
            of: upload, device, nil, ShownRows(noneFor: caller), within: wait)
        if let refusal = outcome.refusal { throw Problem(.notReady, refusal.message) }
        if outcome.leavesOutRows {
            outcome = try await addingRows(to: outcome, of: upload, until: handler.clock.now() + wait)
        }
        return try await outcome.forFace(of: device, schema.schema) { try await self.row(of: $0, $1, continuing: $2) }
    }

    /// Adds the rows of conflicts and refusals, and reserves what they have in memory: a page, and where they are more, as much as
    /// all of them and their text may have, since the rest is read one by one.
    private func addingRows(
        to outcome: BatchOutcome, of upload: UploadReference, until deadline: Duration
    ) async throws -> BatchOutcome {
        let page = handler.configuration.pageBytes
        try await keep(page, until: deadline)
        do {
            let shown = try await handler.addingRows(to: outcome, of: upload, caller, device, until: deadline)
            if !shown.leavesOutRows { return shown }
        }
        // The page is freed first, and read again: requests that hold space would wait for one another.
        reservation.withLock { $0 = nil }
        let limits = limits.outcome
        // The row that reaches the limit is processed.
        let rows = min(outcome.shownRowCount * limits.maxRowBytes, limits.maxBatchRowBytes + limits.maxRowBytes)
        try await keep(page + 2 * rows, until: deadline)
        return try await handler.addingRows(to: outcome, of: upload, caller, device, until: deadline)
    }

    /// Reserves what the response has in memory until it ends.
    private func keep(_ bytes: Int, until deadline: Duration) async throws(Problem) {
        let reserved = try await reserve(bytes, until: deadline)
        reservation.withLock { $0 = reserved }
    }

    /// A row that exceeded what an outcome shows.
    ///
    /// - Parameter head: what the stream had in which the outcome was read.
    private func row(of table: Int, _ id: RowID, continuing head: TimeStamp) async throws -> FaceRow? {
        try await rows(.ids(table: table, [id]), limit: 1, leastHead: .zero, continuing: head).rows.first
    }

    // MARK: Rows

    func rows(
        _ selection: StreamSelection, limit: Int, leastHead: TimeStamp
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp) {
        // A response that is sent in pieces may take hours.
        try handler.checkRevoked(device)
        let deadline = handler.clock.now() + handler.configuration.outcomeWait
        let isStreamed = reservationOfPieces.withLock { $0 != nil }
        let query = StreamQuery(
            of: device.caller, selection, limit: limit, maximumBytes: isStreamed ? Self.pieceBytes : Self.pageBytes,
            leastHead: leastHead)
        let isReserved = isStreamed || hasReservation
        // The rows, and their text.
        let reserved = isReserved ? nil : try await reserve(2 * Self.pageBytes, until: deadline)
        defer { withExtendedLifetime(reserved) {} }
        // Not before it has waited, in which others may have taken the tokens.
        if !mayRead.exchange(true, ordering: .relaxed) { try handler.rates.check(device, .piece) }
        guard
            let found = try await handler.link.rows(query, within: handler.clock.remaining(until: deadline))
        else { throw Problem(.positionAhead, "the position is above everything that this server has: begin again") }
        handler.rates.pulled(rows: found.rows.count, ofBytes: found.json.count, by: device)
        let reader = FaceDevice(device)
        let shown = schema.schema
        var rows: [FaceRow] = []
        rows.reserveCapacity(found.rows.count)
        for row in found.rows { rows.append(try FaceRow(row, found.json, in: shown, for: reader)) }
        return (rows, found.rest, found.head)
    }

    private func reserve(_ bytes: Int, until deadline: Duration) async throws(Problem) -> ResponseReservation {
        try await handler.reserve(bytes, for: device.caller, until: deadline)
    }

    func isDrained(at timeStamp: TimeStamp) -> Bool {
        let pull = OwnerPull(
            owner: device.caller, knowledge: OwnerKnowledge(floor: timeStamp), leastHead: timeStamp)
        guard let page = handler.link.idlePage(pull), case .rows(let rows) = page.content else { return false }
        return rows.head == timeStamp
    }

    /// The size of the rows of an answer that is sent as a whole, and of the first piece of others.
    ///
    /// A thousand of a kilobyte: an answer in pieces costs up to a quarter more.
    static var pageBytes: Int { 1 << 20 }

    /// The size of the rows of each further piece, which are read while the one before is sent.
    ///
    /// A response keeps the space of three as long as its client reads.
    static var pieceBytes: Int { 512 << 10 }

    func stream(
        _ headers: [HTTPField], _ next: @escaping @Sendable () async throws -> FacePiece
    ) async throws -> HTTPResponse {
        let first = try await next()
        if first.isLast {
            return HTTPResponse(status: 200, headers: headers, body: first.bytes, isCompressible: true)
        }
        // A piece in the connection's buffer, and the rows and the text of the next.
        let reserved = try await reserve(
            max(first.bytes.count, Self.pieceBytes) + 2 * Self.pieceBytes,
            until: handler.clock.now() + handler.configuration.outcomeWait)
        reservationOfPieces.withLock { $0 = reserved }
        handler.rates.pulled(first.bytes.count, by: device)
        return handler.facePieces().response(200, headers, first: first) {
            try await self.waitToPull()
            let piece = try await next()
            self.handler.rates.pulled(piece.bytes.count, by: self.device)
            return piece
        }
    }

    /// Waits, in a response that has begun, until the device may pull more.
    func waitToPull() async throws {
        try await waitForRate { () throws(Problem) in
            try handler.rates.check(device, .piece, isRefusal: false)
        }
    }

    /// Repeats what takes tokens until it gets them, in a response or a body that has begun.
    func waitForRate(_ take: () throws(Problem) -> Void) async throws {
        while true {
            try handler.checkRevoked(device)
            do throws(Problem) {
                return try take()
            } catch {
                guard error.code == .rateLimited, let seconds = error.retryAfter else { throw error }
                try await handler.clock.sleep(handler.clock.now() + .seconds(seconds))
            }
        }
    }

    // MARK: Positions

    func positions(isFresh: Bool) async throws -> [String: Int64] {
        try await positions(of: device, isFresh: isFresh)
    }

    func positions(of knowledgeID: KnowledgeID) async throws -> [String: Int64] {
        try await positions(of: Device(caller: device.caller, knowledgeID: knowledgeID), isFresh: true)
    }

    private func positions(of device: Device, isFresh: Bool) async throws -> [String: Int64] {
        guard let positions = handler.positions else { return [:] }
        let all = try await GatewayHandler<Log, Link, Auth>.translating { () async throws(DeviceRegistryError) in
            try await positions.positions(of: device, isFresh: isFresh)
        }
        var own: [String: Int64] = [:]
        for (name, value) in all where name.utf8.starts(with: scope.utf8) {
            own[String(name.dropFirst(scope.count))] = value
        }
        return own
    }

    var sharesPositions: Bool { handler.positions?.isShared ?? false }

    func knownPosition(_ name: String) -> Int64? { handler.positions?.known(scope + name, of: device) }

    func raise(_ raised: [String: Int64], isDurable: Bool) async throws {
        guard let positions = handler.positions else { return }
        let named = Dictionary(uniqueKeysWithValues: raised.map { (scope + $0.key, $0.value) })
        try await GatewayHandler<Log, Link, Auth>.translating { () async throws(DeviceRegistryError) in
            try await positions.raise(named, of: device, isDurable: isDurable)
        }
    }

    // MARK: Devices

    func describe(_ description: DeviceDescription) async throws {
        guard let tracker = handler.tracker else { return }
        tracker.add(DeviceSighting(device, at: now, description: description))
        try await GatewayHandler<Log, Link, Auth>.translating { () async throws(DeviceRegistryError) in
            try await handler.writeDevices(of: device.caller)
        }
    }

    func devices(isKeeping: Bool, _ body: (RegisteredDevice) -> Void) async throws {
        guard let registry = handler.devices?.registry else { return }
        let deadline = handler.clock.now() + handler.configuration.outcomeWait
        try await GatewayHandler<Log, Link, Auth>.translating { () async throws(DeviceRegistryError) in
            try await handler.writeDevices(of: device.caller)
        }
        guard var last = try await devices(after: nil, from: registry, until: deadline, body) else { return }
        // Of so many devices, until the response ends.
        if isKeeping, !hasReservation { try await keep(manyDevicesBytes, until: deadline) }
        while let next = try await devices(after: last, from: registry, until: deadline, body) { last = next }
    }

    /// Looks at a page of devices.
    ///
    /// - Returns: its last one; `nil` where no others follow.
    private func devices(
        after last: KnowledgeID?, from registry: any DeviceRegistry, until deadline: Duration,
        _ body: (RegisteredDevice) -> Void
    ) async throws -> KnowledgeID? {
        let reserved = hasReservation ? nil : try await reserve(Self.pageBytes, until: deadline)
        defer { withExtendedLifetime(reserved) {} }
        let page = try await GatewayHandler<Log, Link, Auth>.translating { () async throws(DeviceRegistryError) in
            try await registry.devices(of: device.caller, after: last, limit: Self.devicesOfPage)
        }
        for device in page { body(device) }
        return page.count == Self.devicesOfPage ? page.last?.knowledgeID : nil
    }

    /// So many take at most ``pageBytes``: each has six texts of at most 255 bytes, and sixteen owners.
    private static var devicesOfPage: Int { 150 }
    /// Ten thousand devices with two of these texts, or a part of what all responses may have.
    private var manyDevicesBytes: Int { min(8 << 20, handler.configuration.server.maxAnswerBytesInFlight / 8) }
}
