/// What an owner has in the tables, as its quota counts it.
///
/// A value counts with its JSON unless it is what a row has whose creation did not name the column: the declared default, else null.
/// So a row counts the same before and after a later schema version adds columns, and the usage is always the sum of the rows.
package struct OwnerUsage: Sendable, Hashable {
    /// Rows that are not deleted.
    package var rows: Int64
    /// Of the values of these rows.
    package var bytes: Int64
    /// Deleted rows, which the tables keep permanently.
    package var deletedRows: Int64
    /// Of the values of the deleted rows.
    package var deletedBytes: Int64

    /// By default the usage of an unknown owner.
    package init(rows: Int64 = 0, bytes: Int64 = 0, deletedRows: Int64 = 0, deletedBytes: Int64 = 0) {
        self.rows = rows
        self.bytes = bytes
        self.deletedRows = deletedRows
        self.deletedBytes = deletedBytes
    }

    /// The usage of one row.
    init(of values: EditedValues, isDeleted: Bool) {
        let bytes = Int64(values.sizeBesideDefaults)
        self = isDeleted ? OwnerUsage(deletedRows: 1, deletedBytes: bytes) : OwnerUsage(rows: 1, bytes: bytes)
    }

    /// The usage after a row was replaced.
    func replacing(_ old: OwnerUsage, with new: OwnerUsage) -> OwnerUsage {
        OwnerUsage(
            rows: rows - old.rows + new.rows, bytes: bytes - old.bytes + new.bytes,
            deletedRows: deletedRows - old.deletedRows + new.deletedRows,
            deletedBytes: deletedBytes - old.deletedBytes + new.deletedBytes)
    }

    fileprivate var allRows: Int64 { rows + deletedRows }
    fileprivate var allBytes: Int64 { bytes + deletedBytes }
}

/// What an owner may have in the tables.
package struct OwnerQuota: Sendable, Hashable {
    /// ``OutcomeLimits/maxOwnerRows``; `nil`: any number.
    private let maxRows: Int64?
    /// ``OutcomeLimits/maxOwnerBytes``; `nil`: any size.
    private let maxBytes: Int64?

    /// How many times as much an owner may have together with its deleted rows.
    ///
    /// These are kept for devices that do not know yet, so rows that are created and deleted again and again need a limit of
    /// their own.
    package static let deletedFactor: Int64 = 10

    /// - Parameters:
    ///   - maxRows: 0: any number.
    ///   - maxBytes: 0: any size.
    init(maxRows: Int, maxBytes: Int) {
        self.maxRows = maxRows > 0 ? Int64(maxRows) : nil
        self.maxBytes = maxBytes > 0 ? Int64(maxBytes) : nil
    }

    /// Why a row may not be replaced; `nil` when it may.
    ///
    /// Only what grows is limited, so that an owner above its quota can delete, and make rows smaller.
    func refusal(of new: OwnerUsage, over old: OwnerUsage, in usage: OwnerUsage) -> String? {
        let after = usage.replacing(old, with: new)
        if let maxRows {
            if new.rows > old.rows, after.rows > maxRows {
                return "this owner may have at most \(maxRows) rows: delete some"
            }
            let all = maxRows * Self.deletedFactor
            if new.allRows > old.allRows, after.allRows > all {
                return "this owner may have at most \(all) rows together with deleted ones, which are kept"
            }
        }
        if let maxBytes {
            if new.bytes > old.bytes, after.bytes > maxBytes {
                return
                    "the values of this owner's rows may have at most \(maxBytes) bytes: delete rows or make some smaller"
            }
            let all = maxBytes * Self.deletedFactor
            if new.allBytes > old.allBytes, after.allBytes > all {
                return
                    "the values of this owner's rows may have at most \(all) bytes together with those of deleted rows, which are kept"
            }
        }
        return nil
    }
}

extension ChangePart {
    /// The quota of the part's owner; rules versions below 3 have none.
    var quota: OwnerQuota? { rules >= 3 ? OwnerQuota(maxRows: maxOwnerRows, maxBytes: maxOwnerBytes) : nil }
}
