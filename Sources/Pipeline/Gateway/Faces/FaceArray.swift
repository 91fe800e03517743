import JSONText
import SyncModel

/// The JSON array of a long answer, made in pieces.
package struct FaceArray: Sendable {
    private var bytes: [UInt8] = []
    private var hasBegun = false

    package init() {}

    package mutating func add(_ write: (inout JSONWriter) -> Void) {
        bytes.append(UInt8(ascii: hasBegun ? "," : "["))
        hasBegun = true
        var writer = JSONWriter(capacity: 256)
        write(&writer)
        bytes.append(contentsOf: writer.take())
    }

    /// Whether something was added since the last piece.
    package var hasMore: Bool { !bytes.isEmpty }

    /// What was added since the last piece.
    package mutating func piece() -> FacePiece {
        defer { bytes = [] }
        return FacePiece(bytes, isLast: false)
    }

    /// The last piece, with what was added since the one before.
    package mutating func end() -> FacePiece {
        defer { bytes = [] }
        return FacePiece(bytes + Array(hasBegun ? "]".utf8 : "[]".utf8), isLast: true)
    }
}
