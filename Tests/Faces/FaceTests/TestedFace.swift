import CrudFace
import Gateway
import RestFace
import SQLiteNowFace
import SyncModel
import Testing
import TrackerFace

/// A face, with what it cannot serve.
struct TestedFace: Sendable, CustomTestStringConvertible {
    let face: any Face
    /// Names of the protocol that no column may have.
    var reservedColumns: [String] = []
    /// Names of tables that would be paths of the protocol.
    var reservedTables: [String] = []
    var servedPolicies = Policy.allCases

    static let all = [
        TestedFace(
            face: CrudFace(), reservedColumns: ["id", "Created_at", "updated_at", "USER_ID", "sync_status"],
            servedPolicies: [.lastWriteWins]),
        TestedFace(face: RestFace(), reservedColumns: ["id", "ID", "Ts", "TS", "deleted"]),
        // Rows are in payloads of their own.
        TestedFace(face: SQLiteNowFace()),
        TestedFace(
            face: TrackerFace(),
            reservedColumns: ["serverId", "SERVERID", "createdon", "updatedOn", "updatedBy", "Deleted"],
            reservedTables: ["devices", "Database"], servedPolicies: [.lastSyncWins, .lastWriteWins]),
    ]

    var testDescription: String { face.prefix }
}
