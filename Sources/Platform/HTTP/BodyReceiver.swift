import Glibc

/// Takes in the body of one request, piece by piece, within its limit and the server's budget.
///
/// Used by the thread of its connection alone.
final class BodyReceiver {
    /// What is wrong with a body.
    enum Fault: Error {
        case tooLarge
        case overloaded
        case malformed
    }

    /// What is made at first where the size is not known, or is larger: enough for the common request, little enough
    /// that clients who announce much and send nothing hold little.
    private static let firstPiece = 64 << 10

    private var memory: UnsafeMutableRawPointer?
    private var count = 0
    /// Bytes that fit, without the padding.
    private var capacity = 0
    private var reservation = 0
    private var gunzipReservation = 0
    private var compressedCount = 0
    private let limit: Int
    private let declared: Int?
    private let budget: ByteBudget
    private var gunzip: Gunzip?

    /// Makes ready for a body of at most `limit` bytes, of which `declared` are announced.
    init(limit: Int, declared: Int?, isGzip: Bool, budget: ByteBudget) throws(Fault) {
        self.limit = limit
        self.declared = declared
        self.budget = budget
        guard isGzip else { return }
        guard budget.take(Gunzip.memory) else { throw .overloaded }
        gunzipReservation = Gunzip.memory
        do {
            gunzip = try Gunzip()
        } catch {
            throw .overloaded
        }
    }

    deinit {
        free(memory)
        budget.giveBack(reservation + gunzipReservation)
    }

    /// The most bytes that a body of `limit` bytes can have on the way: gzip may make it a little larger.
    static func limitOnTheWay(_ limit: Int, isGzip: Bool) -> Int {
        isGzip ? limit + limit / 1000 + 64 : limit
    }

    /// Takes the next piece.
    func take(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
        guard gunzip == nil else { return try takeCompressed(bytes) }
        try makeRoom(for: count + bytes.count, upTo: limit)
        memory?.advanced(by: count).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
        count += bytes.count
    }

    private func takeCompressed(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
        compressedCount += bytes.count
        guard compressedCount <= Self.limitOnTheWay(limit, isGzip: true) else { throw .tooLarge }
        var rest = bytes
        var isFull = true
        while !rest.isEmpty || isFull {
            // One byte more than allowed is made room for; a body that fills that one, too, asks for more.
            if count == capacity { try makeRoom(for: count + 1, upTo: limit + 1) }
            let room = UnsafeMutableRawBufferPointer(start: memory?.advanced(by: count), count: capacity - count)
            let taken: Int
            let made: Int
            do {
                (taken, made) = try gunzip!.read(rest, into: room)
            } catch {
                throw error == .outOfMemory ? .overloaded : .malformed
            }
            count += made
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(taken))
            // A full buffer may hide output that waits inside zlib.
            isFull = made == room.count
            if taken == 0 && made == 0 { break }
        }
    }

    /// Grows the memory so that it holds `needed` bytes and the padding.
    private func makeRoom(for needed: Int, upTo limit: Int) throws(Fault) {
        guard needed > capacity else { return }
        guard needed <= limit else { throw .tooLarge }
        var wanted = max(needed, 2 * capacity)
        if let declared, gunzip == nil {
            wanted = max(needed, min(declared, max(wanted, Self.firstPiece)))
        } else if capacity == 0 {
            wanted = max(wanted, min(Self.firstPiece, 4 * max(declared ?? 0, 1024)))
        }
        wanted = min(wanted, limit)
        let padding = capacity == 0 ? HTTPBody.padding : 0
        if !budget.take(wanted - capacity + padding) {
            // Less than is convenient, but as much as must be.
            wanted = needed
            guard budget.take(wanted - capacity + padding) else { throw .overloaded }
        }
        reservation += wanted - capacity + padding
        guard let grown = realloc(memory, wanted + HTTPBody.padding) else { throw .overloaded }
        memory = grown
        capacity = wanted
    }

    /// Ends the body and hands it over.
    func finish() throws(Fault) -> HTTPBody {
        if let isComplete = gunzip?.isComplete, !isComplete { throw .malformed }
        guard count > 0, let memory else { return .empty }
        let wasted = capacity - count
        var end = memory
        // Give back what doubling left over, where it is worth a move.
        if wasted > count / 4, let shrunk = realloc(memory, count + HTTPBody.padding) {
            end = shrunk
            budget.giveBack(wasted)
            reservation -= wasted
        }
        end.advanced(by: count).initializeMemory(as: UInt8.self, repeating: 0, count: HTTPBody.padding)
        let body = HTTPBody(memory: end, count: count, reservation: reservation, budget: budget)
        self.memory = nil
        reservation = 0
        return body
    }
}
