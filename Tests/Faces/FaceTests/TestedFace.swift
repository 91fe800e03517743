import Gateway
import RestFace
import SQLiteNowFace
import Testing
import TrackerFace

/// A face, with what it cannot serve.
struct TestedFace: Sendable, CustomTestStringConvertible {
    let face: any Face
    /// Names of the protocol that no column may have.
    var reservedColumns: [String] = []
    /// Names of tables that would be paths of the protocol.
    var reservedTables: [String] = []
    var servesCheckBase = true

    static let all = [
        TestedFace(face: RestFace(), reservedColumns: ["id", "ID", "Ts", "TS", "deleted"]),
        // Rows are in payloads of their own.
        TestedFace(face: SQLiteNowFace()),
        TestedFace(
            face: TrackerFace(),
            reservedColumns: ["serverId", "SERVERID", "createdon", "updatedOn", "updatedBy", "Deleted"],
            reservedTables: ["devices", "Database"], servesCheckBase: false),
    ]

    var testDescription: String { face.prefix }
}
