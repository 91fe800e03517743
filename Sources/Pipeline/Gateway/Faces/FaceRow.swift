import FanOutLink
import JSON
import JSONText
import SyncModel

/// A row of the caller, as a stream has it.
///
/// A view of the JSON that the stream has rendered, which is copied to where it is sent and not parsed.
package struct FaceRow: Sendable {
    /// The device that wrote the newest version of a row.
    package enum Writer: Sendable, Hashable {
        /// The one that sends the request.
        case device
        /// One of another caller that has the same knowledgeId.
        case namesake
        case other
    }

    /// The table's index in the schema.
    package let table: Int
    package let timeStamp: TimeStamp
    package let version: Int64
    package let isDeleted: Bool
    /// The log's time of the creation, microseconds since 1970; `nil` for the row of a conflict or refusal.
    package let createdAt: Int64?
    package let writer: Writer
    /// Whether its last writer has all its columns as they are; `nil` for the row of a conflict or refusal.
    package let isExact: Bool?

    /// The rows of an answer.
    private let json: [UInt8]
    private let idJSON: RowPlaces.Place
    private let timeStampJSON: RowPlaces.Place
    private let updatedAtJSON: RowPlaces.Place?
    private let writerJSON: RowPlaces.Place
    /// The object of the columns of the schema version in which the row was last written, in the schema's order.
    private let valuesJSON: RowPlaces.Place
    private let valueCount: Int
    /// Whether its table has columns that are newer than the row.
    private let lacksColumns: Bool

    /// The size of the object of its columns, in bytes.
    package var valuesSize: Int { valuesJSON.range.count }

    /// Makes a view of a row of a stream.
    ///
    /// - Parameters:
    ///   - json: has the row.
    ///   - schema: the one in which the face shows it.
    ///   - device: the one that sends the request.
    package init(
        _ row: StreamRow, _ json: borrowing [UInt8], in schema: borrowing Schema, for device: borrowing FaceDevice
    ) throws(Problem) {
        try self.init(
            json, at: row.json, table: row.table, row.columns, createdAt: row.createdAt, isExact: row.isExact,
            in: schema, for: device)
    }

    /// Makes a view of the row of a conflict or refusal.
    init(
        ofResult json: borrowing [UInt8], table: Int, in schema: borrowing Schema, for device: borrowing FaceDevice
    ) throws(Problem) {
        try self.init(
            json, at: 0..<json.count, table: table, nil, createdAt: nil, isExact: nil, in: schema, for: device)
    }

    private init(
        _ json: borrowing [UInt8], at range: Range<Int>, table: Int, _ columns: Int?, createdAt: Int64?, isExact: Bool?,
        in schema: borrowing Schema, for device: borrowing FaceDevice
    ) throws(Problem) {
        let bytes = json.span
        guard let places = RowPlaces(bytes, at: range),
            let timeStamp = TimeStamp(rawValue: places.timeStamp),
            let valueCount = columns ?? places.values.memberCount(in: bytes)
        else { throw Self.fault }
        // A device that got a part of the row would never ask for the rest.
        guard table < schema.tables.count, valueCount <= schema.tables[table].columns.count else {
            throw Problem(.notReady, "a row was written under a schema version that this gateway is about to read")
        }
        self.json = copy json
        (self.table, self.createdAt, self.isExact) = (table, createdAt, isExact)
        (self.timeStamp, version, isDeleted) = (timeStamp, places.version, places.isDeleted)
        (idJSON, timeStampJSON, updatedAtJSON) = (places.id, places.timeStampPlace, places.updatedAt)
        (writerJSON, valuesJSON) = (places.author, places.values)
        self.valueCount = valueCount
        lacksColumns = valueCount < schema.tables[table].columns.count
        writer = device.writer(
            caller: bytes.extracting(places.caller.range), knowledgeID: bytes.extracting(places.author.range))
    }

    private static var fault: Problem { Problem(.notReady, "a row of the stream cannot be read") }

    // MARK: Ids

    package var id: RowID {
        get throws(Problem) {
            guard let id = RowID(try text(idJSON)) else { throw Self.fault }
            return id
        }
    }

    /// The device of its newest version.
    package var writersID: KnowledgeID {
        get throws(Problem) {
            guard let id = KnowledgeID(try text(writerJSON)) else { throw Self.fault }
            return id
        }
    }

    /// As the client contract has it; `nil` unless the table is under lastWriteWins.
    package var updatedAt: String? { updatedAtJSON.map { String(decoding: json[$0.content], as: UTF8.self) } }

    private func text(_ place: RowPlaces.Place) throws(Problem) -> String {
        let literal = json[place.range]
        if !literal.contains(UInt8(ascii: "\\")) { return String(decoding: json[place.content], as: UTF8.self) }
        do {
            var parser = JSONParser()
            let copy = Array(literal)
            return try parser.withDocument(copy.span) { document in
                guard let text = document.root.string else { throw Self.fault }
                return text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
            }
        } catch {
            throw Self.fault
        }
    }

    // MARK: Columns

    /// The canonical JSON of every column of a table; one that is newer than the row has its default.
    package func values(in table: Table) -> [ArraySlice<UInt8>] {
        var values: [ArraySlice<UInt8>] = []
        values.reserveCapacity(table.columns.count)
        let bytes = json.span
        _ = JSONRanges.forEachMember(in: bytes, objectAt: valuesJSON.range.lowerBound) { _, start in
            let end = JSONRanges.end(ofValue: start, in: bytes)
            if let end { values.append(json[start..<end]) }
            return end
        }
        for column in table.columns.dropFirst(values.count) { values.append(column.defaultJSON[...]) }
        return values
    }

    /// The canonical JSON of a column.
    package func value(_ column: Int, in table: Table) -> ArraySlice<UInt8> { values(in: table)[column] }

    // MARK: Writing

    /// Lends the id as JSON has it, without quotes: as it is where it needs no escapes.
    package func withIDText<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        body(json.span.extracting(idJSON.content))
    }

    package func writeID(to writer: inout JSONWriter) { writer.raw(json.span.extracting(idJSON.range)) }

    package func writeTimeStamp(to writer: inout JSONWriter) {
        writer.raw(json.span.extracting(timeStampJSON.range))
    }

    /// Writes the knowledgeId of the device of its newest version.
    package func writeWriter(to writer: inout JSONWriter) { writer.raw(json.span.extracting(writerJSON.range)) }

    /// Writes when it was updated in milliseconds; its timeStamp where it was written before its table was under lastWriteWins.
    package func writeUpdatedAt(to writer: inout JSONWriter) {
        guard let place = updatedAtJSON else { return writer.time(timeStamp.rawValue, inMilliseconds: true) }
        writer.unescaped { bytes in
            bytes.append(json.span.extracting(place.content))
            bytes.endTimeWithMilliseconds()
        }
    }

    /// Writes every column as a member, by its name.
    ///
    /// - Parameter table: the row's.
    package func writeColumns(of table: @autoclosure () -> Table, to writer: inout JSONWriter) {
        if valueCount > 0 { writer.raw(json.span.extracting(valuesJSON.content)) }
        if !lacksColumns { return }
        for column in table().columns[valueCount...] {
            writer.name(column.name)
            writer.raw(column.defaultJSON)
        }
    }
}

/// The device of a request, as rows name their writers.
package struct FaceDevice: Sendable {
    private let caller: [UInt8]
    private let knowledgeID: [UInt8]

    package init(_ device: Device) {
        var writer = JSONWriter()
        writer.value(device.caller.text)
        caller = writer.take()
        writer.value(device.knowledgeID.text)
        knowledgeID = writer.take()
    }

    /// - Parameters: JSON as Weir writes it, in which equal ids are equal bytes.
    func writer(caller: Span<UInt8>, knowledgeID: Span<UInt8>) -> FaceRow.Writer {
        guard knowledgeID.isEqual(to: self.knowledgeID) else { return .other }
        return caller.isEqual(to: self.caller) ? .device : .namesake
    }
}

extension Column {
    /// What a row has that is older than the column.
    fileprivate var defaultJSON: [UInt8] { defaultValue ?? Array("null".utf8) }
}

extension Span<UInt8> {
    fileprivate func isEqual(to bytes: [UInt8]) -> Bool {
        guard count == bytes.count else { return false }
        for index in bytes.indices where self[index] != bytes[index] { return false }
        return true
    }
}
