import DeviceRegistry
import FanOutLink
import Gateway
import HTTP
import JSONText
import SyncModel

/// The devices of the caller.
struct TrackerDevices: Sendable {
    private let session: any FaceSession

    init(_ session: any FaceSession) { self.session = session }

    private struct Entry {
        let id: KnowledgeID
        var name: String?
        /// Microseconds since 1970.
        var uploadedOn: Int64?
    }

    /// `PUT /tracker/devices/{name}`: names the device of the request, which its request added.
    func add(named name: String) async throws -> HTTPResponse {
        guard name.utf8.count <= DeviceDescription.maximumLength else {
            throw Problem(.invalidRequest, "a device's name has at most \(DeviceDescription.maximumLength) bytes")
        }
        try await session.describe(DeviceDescription(name: name))
        var writer = JSONWriter(capacity: 256)
        write(Entry(id: session.device.knowledgeID, name: name), to: &writer)
        return .uncached(200, writer.take())
    }

    /// `GET /tracker/devices?after=`: the other devices that uploaded after a time, and those whose rows this one lacks.
    ///
    /// The registry is written later than rows are, so the newest rows say who uploaded, too: where there is one that the device may
    /// lack, there is a device in the list.
    func list(after: TimeStamp) async throws -> HTTPResponse {
        var positions = try await TrackerPositions(session)
        if after == .zero { positions = try await positions.startWithoutFile() }
        let search = try await search(after: after, positions)
        var entries: [KnowledgeID: Entry] = [:]
        try await session.devices(isKeeping: true) { device in
            let id = device.knowledgeID
            let timeStamp = search.writers[id]
            let hasUploaded = id != session.device.knowledgeID && device.lastUpload ?? 0 > after.rawValue
            guard hasUploaded || timeStamp != nil else { return }
            let uploadedOn = max(device.lastUpload ?? 0, timeStamp?.rawValue ?? 0)
            entries[id] = Entry(id: id, name: device.name, uploadedOn: uploadedOn)
        }
        for (id, timeStamp) in search.writers where entries[id] == nil {
            entries[id] = Entry(id: id, uploadedOn: timeStamp.rawValue)
        }
        try await positions.raise(complete: search.complete)
        try await positions.freeze(search.head)
        var writer = JSONWriter(capacity: 128 * entries.count + 2)
        writer.array { writer in
            for entry in entries.values.sorted(by: { $0.id < $1.id }) { write(entry, to: &writer) }
        }
        return .uncached(200, writer.take())
    }

    private struct Search {
        /// Devices that wrote rows which this one may lack, with the newest of them that was looked at.
        var writers: [KnowledgeID: TimeStamp] = [:]
        /// The newest timeStamp of the caller.
        var head = TimeStamp.zero
        /// Up to here the device lacks nothing.
        var complete = TimeStamp.zero
    }

    /// Looks at the rows above a time, and at those that the device has not shown to have, until one is found that it may lack.
    ///
    /// Its own rows are looked at once: none of them keeps ``TrackerPositions/complete`` from rising, and those that took more than
    /// a page are noted, page by page, so that the next request begins behind them, whatever time it names.
    private func search(after: TimeStamp, _ positions: TrackerPositions) async throws -> Search {
        let complete = session.schema.schema.tables.map { positions.complete($0) }
        var search = Search(complete: positions.complete)
        let least = complete.min() ?? positions.complete
        let start = min(after, least)
        var noted = positions.own
        let leastHead = max(positions.head ?? .zero, positions.shown, noted.upTo)
        let isInside = noted.above <= start && start < noted.upTo
        var own = isInside ? noted : TrackerPositions.OwnRows(above: start, upTo: start)
        var rest: StreamSelection? = .changes(above: own.upTo, upTo: .maximum, table: nil)
        var limit = Self.firstLimit
        var firstMissing: TimeStamp?
        while let selection = rest, search.writers.isEmpty {
            let found = try await session.rows(
                selection, limit: limit, leastHead: leastHead, continuing: search.head == .zero ? nil : search.head)
            if search.head == .zero { search.head = found.head }
            for row in found.rows where row.timeStamp <= search.head && row.isNews {
                own.above = row.timeStamp
                let isMissing = row.timeStamp > (row.table < complete.count ? complete[row.table] : positions.complete)
                if isMissing, firstMissing == nil { firstMissing = row.timeStamp }
                if isMissing || row.timeStamp > after { search.writers[try row.writersID] = row.timeStamp }
            }
            // Rows that are written meanwhile are above the head that this request freezes.
            if case .changes(let above, _, _) = found.rest, above < search.head {
                (rest, own.upTo) = (found.rest, above)
            } else {
                (rest, own.upTo) = (nil, search.head)
            }
            if search.writers.isEmpty, rest != nil || limit > Self.firstLimit {
                try await positions.raise(own: own, after: noted)
                noted = own
            }
            limit = 1000
        }
        if let firstMissing {
            search.complete = TimeStamp(firstMissing.rawValue - 1)
        } else if search.writers.isEmpty {
            search.complete = search.head
        }
        return search
    }

    /// Most requests find what they look for among so many rows, or no more than these.
    private static let firstLimit = 100

    private func write(_ entry: Entry, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("installationId", entry.id.text)
            writer.name("name")
            if let name = entry.name { writer.value(name) } else { writer.null() }
            if let uploadedOn = entry.uploadedOn { writer.member("uploadedOn", String(microseconds: uploadedOn)) }
        }
    }
}
