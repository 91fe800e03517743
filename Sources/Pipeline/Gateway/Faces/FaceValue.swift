import JSON
import JSONText
import SyncModel

/// The table that a path names.
package struct FaceTable: Sendable {
    package let index: Int
    package let table: Table

    package init?(named name: String, in schema: Schema) {
        var name = name
        guard let index = name.withUTF8({ schema.table(named: $0.span.bytes) }) else { return nil }
        self.index = index
        table = schema.tables[index]
    }
}

/// A value that a client gives a column.
package struct FaceValue: Sendable {
    /// As sent.
    package let json: [UInt8]
    package let canonical: [UInt8]

    /// The id of a row as a reference of a column; `nil` where the column can have no such value.
    package init?(_ id: RowID, for column: Column, limits: SyncLimits) {
        var writer = JSONWriter()
        writer.value(id.text)
        var canonical: [UInt8] = []
        var text = id.text
        let isValue = text.withUTF8 { utf8 in
            do throws(ValueRefusal) {
                _ = try CanonicalForm(column, maximumBytes: limits.outcome.maxValueBytes)
                    .append(string: utf8.span, to: &canonical)
                return true
            } catch {
                return false
            }
        }
        guard isValue else { return nil }
        self.init(json: writer.take(), canonical: canonical)
    }

    package static let null = FaceValue(json: Array("null".utf8), canonical: Array("null".utf8))

    private init(json: [UInt8], canonical: [UInt8]) {
        self.json = json
        self.canonical = canonical
    }

    package init(_ value: borrowing JSONValue, for column: Column, limits: SyncLimits) throws(FaceRefusal) {
        var json: [UInt8] = []
        json.append(value.sourceBytes)
        do throws(ValueRefusal) {
            self.init(json: json, canonical: try column.canonical(value, limits: limits))
        } catch {
            switch error {
            case .invalid(let message): throw FaceRefusal(.invalidValue, message)
            case .tooLarge(let maximum):
                throw FaceRefusal(.valueTooLarge, "\(column.name): at most \(maximum) bytes are allowed")
            }
        }
    }
}

extension FaceRow {
    /// Whether it has every value that a client gave, by column.
    package func has(_ values: [FaceValue?], in table: Table) -> Bool {
        zip(values, self.values(in: table)).allSatisfy { given, stored in
            given.map { stored.elementsEqual($0.canonical) } ?? true
        }
    }
}

extension Table {
    /// Why a face cannot serve it where it has a column with a name of the protocol, for operators; `nil` where it has none.
    package func problem(reserving isReserved: (String) -> Bool) -> String? {
        guard let column = columns.first(where: { isReserved($0.name) }) else { return nil }
        return
            "the table \(name) has a column \(column.name), which is a name of the protocol: rename it, or leave the face out"
    }
}

/// Why a row that a client sends is refused, with the code of a refused change.
package struct FaceRefusal: Error, Sendable {
    package let code: RefusalCode
    package let message: String

    package init(_ code: RefusalCode, _ message: String) {
        self.code = code
        self.message = message
    }

    /// A member that is neither the protocol's nor a column.
    package static func unknownColumn(_ member: borrowing JSONMember, of table: Table) -> FaceRefusal {
        let name = member.name.withUnsafeBufferPointer { String(decoding: $0.prefix(64), as: UTF8.self) }
        return FaceRefusal(.unknownColumn, "\(table.name) has no column of this name: \"\(name)\"")
    }
}

extension RowID {
    /// - Parameter name: what the protocol calls the id.
    package init(_ value: borrowing JSONValue, named name: String) throws(FaceRefusal) {
        guard let text = value.string,
            let id = RowID(text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
        else { throw FaceRefusal(.invalidChange, "\(name) is a string of 1 to 255 bytes without NUL") }
        self = id
    }
}

extension JSONWriter {
    /// Writes the member `values` of a change: the columns that a client gave.
    package mutating func values(_ values: [FaceValue?], of table: Table) {
        name("values")
        object { writer in
            for (column, value) in zip(table.columns, values) {
                guard let value else { continue }
                writer.name(column.name)
                writer.raw(value.json)
            }
        }
    }

    /// Writes a time in microseconds since 1970, in RFC 3339 and UTC, with six decimals or with three.
    package mutating func time(_ microseconds: Int64, inMilliseconds: Bool = false) {
        unescaped { bytes in
            CanonicalTimestamp.append(microseconds, to: &bytes)
            if inMilliseconds { bytes.endTimeWithMilliseconds() }
        }
    }

    /// Writes a refusal as the problem documents of faces have it.
    ///
    /// - Parameter position: of the row in the request.
    package mutating func refusal(_ refusal: FaceRefusal, at position: Int) {
        object { writer in
            writer.member("position", position)
            writer.member("code", refusal.code.rawValue)
            writer.member("message", refusal.message)
        }
    }
}

extension [UInt8] {
    /// Leaves out the last three decimals of the canonical time at the end.
    mutating func endTimeWithMilliseconds() {
        removeLast(4)
        append(UInt8(ascii: "Z"))
    }
}

extension Problem {
    /// The refusal of a request's only row.
    package init(_ refusal: FaceRefusal) {
        self.init(.changeRefused, refusal.message)
        var writer = JSONWriter()
        writer.array { $0.refusal(refusal, at: 0) }
        members.append(("refusals", writer.take()))
    }
}

extension Column {
    /// The canonical form of a value that a client gives the column, to be compared with a row's.
    ///
    /// - Throws: ``SyncModel/ValueRefusal`` for a value that the column cannot have.
    fileprivate func canonical(_ value: borrowing JSONValue, limits: SyncLimits) throws(ValueRefusal) -> [UInt8] {
        let form = CanonicalForm(self, maximumBytes: limits.outcome.maxValueBytes)
        var bytes: [UInt8] = []
        if value.isNull {
            _ = try form.appendNull(to: &bytes)
        } else if type == .json {
            var minified: [UInt8] = []
            do throws(JSONError) {
                try value.appendMinified(to: &minified, maximumDepth: CanonicalForm.maximumDepth, refusesNUL: true)
            } catch {
                throw .invalid("\(name): \(error.message)")
            }
            _ = try form.append(minified: minified.span, to: &bytes)
        } else if let text = value.string {
            _ = try form.append(string: text, to: &bytes)
        } else if let number = value.numberText {
            _ = try form.append(number: number, to: &bytes)
        } else if let bool = value.bool {
            _ = try form.append(bool, to: &bytes)
        } else {
            throw .invalid("\(name) takes no arrays and objects")
        }
        return bytes
    }
}
