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
    private let idJSON: Place
    private let updatedAtJSON: Place?
    private let writerJSON: Place
    /// The object of the columns of the schema version in which the row was last written, in the schema's order.
    private let valuesJSON: Place
    private let valueCount: Int

    /// - Parameters:
    ///   - json: has the row at a range.
    ///   - schema: the one in which the face shows it.
    ///   - device: the one that sends the request.
    init(
        _ json: [UInt8], at range: Range<Int>, table: Int, createdAt: Int64? = nil, isExact: Bool? = nil,
        in schema: Schema, for device: FaceDevice
    ) throws(Problem) {
        var places = Places()
        let bytes = json.span
        let end = JSONRanges.forEachMember(in: bytes, objectAt: range.lowerBound) { name, start in
            places.note(name, at: start, in: bytes)
        }
        guard end == range.upperBound, let id = places.id, let timeStamp = places.timeStamp,
            let version = places.version, let values = places.values, let caller = places.caller,
            let author = places.author, let isDeleted = places.isDeleted
        else { throw Self.fault }
        // A device that got a part of the row would never ask for the rest.
        guard table < schema.tables.count, places.valueCount <= schema.tables[table].columns.count else {
            throw Problem(.notReady, "a row was written under a schema version that this gateway is about to read")
        }
        self.json = json
        (self.table, self.createdAt, self.isExact) = (table, createdAt, isExact)
        (self.timeStamp, self.version, self.isDeleted) = (timeStamp, version, isDeleted)
        (idJSON, updatedAtJSON, writerJSON, valuesJSON) = (id, places.updatedAt, author, values)
        valueCount = places.valueCount
        writer = device.writer(
            caller: bytes.extracting(caller.range), knowledgeID: bytes.extracting(author.range))
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

    private func text(_ place: Place) throws(Problem) -> String {
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

    package func writeTimeStamp(to writer: inout JSONWriter) { writer.value(timeStamp.rawValue) }

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

    /// Writes every column of its table as a member, by its name.
    package func writeColumns(_ columns: [Column], to writer: inout JSONWriter) {
        if valueCount > 0 { writer.raw(json.span.extracting(valuesJSON.content)) }
        if valueCount >= columns.count { return }
        for column in columns[valueCount...] {
            writer.name(column.name)
            writer.raw(column.defaultJSON)
        }
    }
}

/// Where a value is in a page.
private struct Place {
    private let start: UInt32
    private let end: UInt32

    init(_ start: Int, _ end: Int) { (self.start, self.end) = (UInt32(start), UInt32(end)) }

    /// `nil` for what is not a string.
    init?(string start: Int, _ end: Int?, in bytes: Span<UInt8>) {
        guard let end, bytes[start] == UInt8(ascii: "\"") else { return nil }
        self.init(start, end)
    }

    var range: Range<Int> { Int(start)..<Int(end) }

    /// Without quotes or braces.
    var content: Range<Int> { Int(start) + 1..<Int(end) - 1 }
}

/// Where the parts of a row are, noted while its members are read.
private struct Places {
    var id: Place?
    var timeStamp: TimeStamp?
    var version: Int64?
    var isDeleted: Bool?
    var updatedAt: Place?
    var values: Place?
    var valueCount = 0
    var caller: Place?
    var author: Place?

    /// - Returns: the end of the member's value.
    mutating func note(_ name: Range<Int>, at start: Int, in bytes: Span<UInt8>) -> Int? {
        switch name.count {
        case 6 where bytes.has("values", at: name): return noteValues(at: start, in: bytes)
        case 6 where bytes.has("writer", at: name): return noteWriter(at: start, in: bytes)
        default: break
        }
        guard let end = JSONRanges.end(ofValue: start, in: bytes) else { return nil }
        switch name.count {
        case 2 where bytes.has("id", at: name): id = Place(string: start, end, in: bytes)
        case 7 where bytes.has("version", at: name): version = bytes.number(at: start..<end)
        case 7 where bytes.has("deleted", at: name): isDeleted = bytes[start] == UInt8(ascii: "t")
        case 9 where bytes.has("timeStamp", at: name):
            timeStamp = bytes.number(at: start..<end).flatMap { TimeStamp(rawValue: $0) }
        case 9 where bytes.has("updatedAt", at: name): updatedAt = Place(string: start, end, in: bytes)
        default: break
        }
        return end
    }

    private mutating func noteValues(at start: Int, in bytes: Span<UInt8>) -> Int? {
        var count = 0
        let end = JSONRanges.forEachMember(in: bytes, objectAt: start) { _, start in
            count += 1
            return JSONRanges.end(ofValue: start, in: bytes)
        }
        valueCount = count
        values = end.map { Place(start, $0) }
        return end
    }

    private mutating func noteWriter(at start: Int, in bytes: Span<UInt8>) -> Int? {
        var (caller, author): (Place?, Place?)
        let end = JSONRanges.forEachMember(in: bytes, objectAt: start) { name, start in
            let end = JSONRanges.end(ofValue: start, in: bytes)
            switch name.count {
            case 6 where bytes.has("syncId", at: name): caller = Place(string: start, end, in: bytes)
            case 11 where bytes.has("knowledgeId", at: name): author = Place(string: start, end, in: bytes)
            default: break
            }
            return end
        }
        (self.caller, self.author) = (caller, author)
        return end
    }
}

/// The device of a request, as rows name their writers.
struct FaceDevice: Sendable {
    private let caller: [UInt8]
    private let knowledgeID: [UInt8]

    init(_ device: Device) {
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

    /// The integer at a range; `nil` for other values.
    fileprivate func number(at range: Range<Int>) -> Int64? {
        guard range.count <= 18, !range.isEmpty else { return nil }
        var number: Int64 = 0
        for index in range {
            guard case 0...9 = self[index] &- UInt8(ascii: "0") else { return nil }
            number = number * 10 + Int64(self[index] &- UInt8(ascii: "0"))
        }
        return number
    }
}
