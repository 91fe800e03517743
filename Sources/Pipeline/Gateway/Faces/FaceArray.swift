import JSONText
import SyncModel

/// The JSON array of a long answer, made in pieces.
package struct FaceArray: Sendable {
    private var writer = JSONWriter()
    private var hasBegun = false

    package init() {}

    /// Makes space for rows that will be added; most have less than half a kilobyte.
    package mutating func reserve(rows count: Int) { writer.reserve(512 * count) }

    package mutating func add(_ write: (inout JSONWriter) -> Void) {
        if !hasBegun { begin() }
        write(&writer)
    }

    private mutating func begin() {
        hasBegun = true
        writer.beginArray()
    }

    /// Whether something was added since the last piece.
    package var hasMore: Bool { byteCount > 0 }

    /// The size of what was added since the last piece.
    package var byteCount: Int { writer.bytes.count }

    /// What was added since the last piece.
    package mutating func piece() -> FacePiece { FacePiece(writer.takePart(), isLast: false) }

    /// The last piece, with what was added since the one before.
    package mutating func end() -> FacePiece {
        if !hasBegun { begin() }
        writer.endArray()
        return FacePiece(writer.take(), isLast: true)
    }
}
