import ChangeLog
import FanOutLink
import HTTP
import OwnerFileStore
import SyncModel

/// The caller's file.
extension GatewaySession {
    private var files: OwnerFiles {
        get throws(Problem) {
            guard let files = handler.files else { throw Problem(.notFound, "this server keeps no files") }
            return files
        }
    }

    func file() async throws -> OwnerFile? {
        let files = try files
        return try await OwnerFiles.translating { () async throws(OwnerFileError) in
            try await files.store.file(of: device.caller)
        }
    }

    func receiveFile(
        of request: FaceRequest, newest: TimeStamp, digest: [UInt8]
    ) async throws -> OwnerFileCommit {
        let pieces = request.http.bodyPieces
        guard let count = pieces == nil ? 0 : pieces?.declaredCount else {
            throw Problem(
                .invalidRequest, status: 411, "Content-Length is missing: room is reserved before the file is read")
        }
        return try await files.receive(pieces, count: count, from: device, newest: newest, digest: digest) {
            let cost = RateCost(bytes: $0, requests: 0)
            try await waitForRate { () throws(Problem) in
                try handler.rates.take(cost, of: device.caller, device, isRefusal: false)
            }
        }
    }

    func send(
        _ range: Range<Int>, of file: OwnerFile, status: Int, _ headers: [HTTPField]
    ) async throws -> HTTPResponse {
        let reader = FileReader(range)
        try handler.rates.check(device, .piece)
        return handler.facePieces().response(
            status, headers, length: range.count, first: try await piece(of: file, reader)
        ) {
            try await self.piece(of: file, reader)
        }
    }

    private func piece(of file: OwnerFile, _ reader: FileReader) async throws -> FacePiece {
        if let piece = reader.piece() { return piece }
        guard let next = try await bytes(from: reader.position, to: reader.end, of: file) else {
            throw Problem(.notReady, "the file was replaced in the meantime: ask again")
        }
        reader.add(next.bytes, next.reservation)
        return try await piece(of: file, reader)
    }

    /// The bytes of one chunk; `nil` once the file was replaced.
    private func bytes(
        from position: Int, to end: Int, of file: OwnerFile
    ) async throws -> (bytes: ArraySlice<UInt8>, reservation: ResponseReservation)? {
        guard let reserved = try await spaceOfChunk() else { return try await bytes(from: position, to: end, of: file) }
        let (number, offset) = position.quotientAndRemainder(dividingBy: OwnerFile.chunkSize)
        let files = try files
        let chunk = try await OwnerFiles.translating { () async throws(OwnerFileError) in
            try await files.store.chunk(number, of: file)
        }
        guard let chunk, offset < chunk.count else { return nil }
        reserved.resize(to: chunk.count)
        handler.rates.pulled(chunk.count - offset, by: device)
        return (chunk[offset..<min(chunk.count, offset + end - position)], reserved)
    }

    /// Waits until the device may pull more, and for the memory; `nil` where others have taken the tokens meanwhile.
    private func spaceOfChunk() async throws -> ResponseReservation? {
        try await waitToPull()
        let deadline = handler.clock.now() + handler.configuration.outcomeWait
        let reserved = try await handler.reserve(2 * OwnerFile.chunkSize, for: device.caller, until: deadline)
        return handler.rates.allows(device, .piece) ? reserved : nil
    }

    func removeFile() async throws -> Bool {
        let files = try files
        return try await OwnerFiles.translating { () async throws(OwnerFileError) in
            try await files.store.remove(device.caller)
        }
    }
}
