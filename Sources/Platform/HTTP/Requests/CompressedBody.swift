/// A body that has arrived, and of which a part is still compressed.
///
/// On the thread of its connection, the decompression would delay the other connections.
final class CompressedBody: @unchecked Sendable {
    // Unchecked: used by one task, which awaits each piece before the next.
    private var receiver: BodyReceiver?

    init(_ receiver: BodyReceiver) { self.receiver = receiver }

    /// Decompresses the next piece; after a fault, the memory is released.
    ///
    /// - Returns: `nil` if there is more.
    func decompressPiece() throws(BodyReceiver.Fault) -> HTTPBody? {
        guard let receiver else { preconditionFailure("a body is decompressed once") }
        do {
            if try receiver.decompressKept(ServerCore.pieceOfTurn) { return nil }
            self.receiver = nil
            return try receiver.finish()
        } catch {
            self.receiver = nil
            throw error
        }
    }
}
