/// The values of a row while the changes of a part are merged into them.
///
/// A part may change a row of megabytes thousands of times. So this has where the JSON of each column is, among the bytes that the row
/// had before the part or those of a change: a merge costs what the change has and the number of columns. The bytes are copied by
/// ``values(of:)`` alone.
package struct EditedValues: Sendable {
    private struct Column {
        /// The index of the change that has the value; negative where the row had it before the part.
        let change: Int32
        /// Where the value is, with the bytes before the JSON.
        let start: UInt32
        let end: UInt32
        let jsonStart: UInt32
        /// Whether it is what a creation stores that does not write the column.
        let isDefault: Bool

        var jsonSize: Int { Int(end - jsonStart) }
        var sizeBesideDefault: Int { isDefault ? 0 : jsonSize }
    }

    /// The values before the part.
    private let base: RowValues
    private var columns: [Column] = []
    /// The size of the JSON of all values.
    package private(set) var jsonSize = 0
    /// The size of the JSON of all values, without those that are the default of their column, else null.
    package private(set) var sizeBesideDefaults = 0
    /// Whether a change wrote a value.
    package private(set) var isMerged = false

    /// - Parameter table: has the defaults.
    package init(_ values: RowValues, in table: Table) {
        base = values
        put(values, of: -1, in: table)
    }

    /// Merges column by column: the change's value if it writes one, else the one before.
    ///
    /// - Parameter index: of the change in its part.
    package func merged(with change: RowValues, at index: Int, in table: Table) -> EditedValues {
        var result = self
        result.put(change, of: Int32(index), in: table)
        return result
    }

    /// Whether a change wrote a column.
    package func isMerged(_ column: Int) -> Bool { columns[column].change >= 0 }

    private mutating func put(_ values: RowValues, of change: Int32, in table: Table) {
        columns.reserveCapacity(max(columns.count, table.columns.count))
        values.forEachField { index, field, json, bytes in
            // A column that the change does not write stays; one that there was not before becomes an absent one.
            if json.isEmpty, index < columns.count { return }
            let column = Column(
                change: change, start: UInt32(field.lowerBound), end: UInt32(field.upperBound),
                jsonStart: UInt32(json.lowerBound),
                isDefault: index < table.columns.count && table.columns[index].isInitial(bytes[json]))
            jsonSize += column.jsonSize
            sizeBesideDefaults += column.sizeBesideDefault
            if change >= 0 { isMerged = true }
            if index < columns.count {
                jsonSize -= columns[index].jsonSize
                sizeBesideDefaults -= columns[index].sizeBesideDefault
                columns[index] = column
            } else {
                columns.append(column)
            }
        }
    }

    /// The values; a copy where ``isMerged``.
    ///
    /// - Parameter changes: of the part.
    package func values(of changes: [Change]) -> RowValues {
        guard isMerged else { return base }
        var values = RowValues()
        values.reserve(columns.reduce(0) { $0 + Int($1.end - $1.start) })
        var first = 0
        while first < columns.count {
            // Adjacent columns that are also adjacent where they come from are one copy.
            var last = first
            while last + 1 < columns.count, columns[last + 1].change == columns[first].change,
                columns[last + 1].start == columns[last].end
            {
                last += 1
            }
            let change = Int(columns[first].change)
            values.append(
                fields: Int(columns[first].start)..<Int(columns[last].end),
                of: change < 0 ? base : changes[change].values)
            first = last + 1
        }
        return values
    }
}

extension Column {
    /// Whether a value is what a creation stores that does not write the column: the declared default, else null.
    fileprivate func isInitial(_ json: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let initial = defaultValue ?? RowValues.null
        return json.count == initial.count && json.elementsEqual(initial)
    }
}
