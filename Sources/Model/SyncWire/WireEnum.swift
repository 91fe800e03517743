import SyncModel

/// A type whose members have numbers in the contract, from 1; 0 means that no member is given.
package protocol WireEnum {
    /// `nil` when the contract has no such number.
    init?(wireNumber: UInt64)

    var wireNumber: UInt64 { get }
}

extension WireEnum where Self: CaseIterable {
    /// `nil` when the contract has no such number.
    package init?(wireNumber: UInt64) {
        guard let member = Self.allCases.first(where: { $0.wireNumber == wireNumber }) else { return nil }
        self = member
    }
}

extension Access: WireEnum {
    package var wireNumber: UInt64 {
        switch self {
        case .read: 1
        case .write: 2
        }
    }
}

extension RefusalCode: WireEnum {
    package var wireNumber: UInt64 {
        switch self {
        case .notGranted: 1
        case .unknownTable: 2
        case .unknownColumn: 3
        case .invalidValue: 4
        case .valueTooLarge: 5
        case .invalidChange: 6
        case .missingValue: 7
        case .rowGone: 8
        case .batchAborted: 9
        case .rowTooLarge: 10
        case .batchRowsTooLarge: 11
        case .changeMismatch: 12
        case .quotaExceeded: 13
        }
    }
}

extension RecordRefusal.Code: WireEnum {
    package var wireNumber: UInt64 {
        switch self {
        case .malformedMessage: 1
        case .wrongPartition: 2
        case .malformedChanges: 3
        case .tooManyChanges: 4
        case .tooManyRefusals: 5
        case .skipped: 6
        }
    }
}

extension SkippedRecord.Source: WireEnum {
    package var wireNumber: UInt64 {
        switch self {
        case .uploads: 1
        case .changes: 2
        }
    }
}

extension Policy: WireEnum {
    package var wireNumber: UInt64 {
        switch self {
        case .lastSyncWins: 1
        case .lastWriteWins: 2
        case .checkBase: 3
        }
    }
}

extension DeleteRule: WireEnum {
    package var wireNumber: UInt64 {
        switch self {
        case .reassign: 1
        }
    }
}

extension OrderedPiece.Verdict: WireEnum {
    package init?(wireNumber: UInt64) {
        switch wireNumber {
        case 1: self = .ordered
        case 2: self = .repeated
        case 3: self = .refused(.batchMismatch)
        case 4: self = .refused(.outcomeExpired)
        case 5: self = .refused(.historyChanged)
        default: return nil
        }
    }

    package var wireNumber: UInt64 {
        switch self {
        case .ordered: 1
        case .repeated: 2
        case .refused(.batchMismatch): 3
        case .refused(.outcomeExpired): 4
        case .refused(.historyChanged): 5
        }
    }
}
