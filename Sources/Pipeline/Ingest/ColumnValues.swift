import JSON
import SyncModel

/// The values of one change in canonical form, in the order of its JSON; reused for the next change, to reuse its memory.
struct ColumnValues {
    /// The canonical JSON of all values, concatenated.
    private(set) var bytes: [UInt8] = []
    /// The range of each column's value in `bytes`, empty where it is absent.
    private(set) var ranges: [Range<Int>] = []
    /// Whether a value was not sent in its canonical form.
    private(set) var isAltered = false
    /// How many columns there are up to the last one with a value.
    private var count = 0

    /// Reads the `values` of a change, in place of those before.
    mutating func read(
        _ change: borrowing JSONValue, table: Table, forms: IngestSchema.TableForms
    ) throws(ChangeRefusal) {
        bytes.removeAll(keepingCapacity: true)
        ranges.removeAll(keepingCapacity: true)
        isAltered = false
        count = 0
        guard let object = change.member(named: "values"), !object.isNull else { return }
        guard var members = object.members else { throw .invalidChange("values is an object") }
        ranges.append(contentsOf: repeatElement(0..<0, count: table.columns.count))
        while let member = members.next() {
            guard let column = table.column(named: member.name.bytes) else {
                let name = ChangeRefusal.quoted(member.name)
                throw ChangeRefusal(.unknownColumn, "\(table.name) has no column \(name)")
            }
            guard ranges[column].isEmpty else {
                throw .invalidChange("values names \(table.columns[column].name) twice")
            }
            let start = bytes.count
            if try forms.columns[column].append(member.value, to: &bytes) { isAltered = true }
            ranges[column] = start..<bytes.count
            count = max(count, column + 1)
        }
    }

    /// The values in the order of the table's columns.
    var rowValues: RowValues {
        var values = RowValues()
        // A header of up to four bytes each, which is a length below 2 MiB.
        values.reserve(bytes.count + 5 * count)
        for place in ranges.prefix(count) {
            if place.isEmpty { values.appendAbsent() } else { values.append(bytes.span.extracting(place)) }
        }
        return values
    }
}
