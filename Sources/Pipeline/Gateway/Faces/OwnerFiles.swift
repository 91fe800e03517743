import Digest
import HTTP
import Metrics
import Observability
import OwnerFileStore
import SyncModel

/// The owners' files of a gateway.
struct OwnerFiles: Sendable {
    let store: any OwnerFileStore
    let metrics: GatewayMetrics
    let logger: Logger

    init(_ store: any OwnerFileStore, metrics: GatewayMetrics, logger: Logger) {
        self.store = store
        self.metrics = metrics
        self.logger = logger
    }

    /// The time between two searches for what uploads that were not completed left.
    private static var interval: Duration { .seconds(300) }
    /// More than the least rate of bodies needs for a chunk.
    private static var idleSeconds: Int { 900 }

    /// Removes what uploads that were not completed left, until the task is cancelled.
    func collect(_ clock: GatewayClock) async {
        while true {
            do { try await clock.sleep(clock.now() + Self.interval) } catch { return }
            do throws(OwnerFileError) {
                try await store.collect(idleFor: Self.idleSeconds)
            } catch {
                logger.warning("Unfinished uploads of files cannot be removed; trying again later", error: error)
            }
        }
    }

    /// Stores a file of an owner while it arrives.
    ///
    /// - Parameter received: called with the size of each piece, before the next is read.
    func receive(
        _ pieces: HTTPBodyPieces?, count: Int, from device: Device, newest: TimeStamp, digest: [UInt8],
        received: (Int) async throws -> Void
    ) async throws -> OwnerFileCommit {
        let upload = try await Self.translating { () async throws(OwnerFileError) in
            try await store.begin(device, byteCount: count)
        }
        do {
            let result = try await receive(pieces, into: upload, newest: newest, digest: digest, received)
            if case .stored = result { metrics.storedFiles.add() } else { metrics.olderFiles.add() }
            return result
        } catch {
            metrics.failedFiles.add()
            await discard(upload)
            throw error
        }
    }

    private func receive(
        _ pieces: HTTPBodyPieces?, into upload: OwnerFileUpload, newest: TimeStamp, digest: [UInt8],
        _ received: (Int) async throws -> Void
    ) async throws -> OwnerFileCommit {
        var hash = SHA256()
        var chunk: [UInt8] = []
        var (number, count) = (0, 0)
        func store() async throws(Problem) {
            let (full, place) = (chunk, number)
            try await Self.translating { () async throws(OwnerFileError) in
                try await self.store.append(full, number: place, to: upload)
            }
            chunk = []
            number += 1
        }
        while let piece = try await pieces?.next() {
            hash.update(piece)
            count += piece.count
            metrics.fileBytes.add(piece.count)
            var rest = piece[...]
            while !rest.isEmpty {
                let part = rest.prefix(OwnerFile.chunkSize - chunk.count)
                chunk.append(contentsOf: part)
                rest = rest.dropFirst(part.count)
                if chunk.count == OwnerFile.chunkSize { try await store() }
            }
            try await received(piece.count)
        }
        if !chunk.isEmpty { try await store() }
        guard count == upload.byteCount, hash.finish() == digest else {
            throw Problem(.digestMismatch, "the body has another SHA-256 than Content-Digest: send it again")
        }
        return try await Self.translating { () async throws(OwnerFileError) in
            try await self.store.commit(upload, newest: newest, digest: digest)
        }
    }

    /// Also of a request that was cancelled.
    private func discard(_ upload: OwnerFileUpload) async {
        await Task {
            do throws(OwnerFileError) {
                try await store.discard(upload)
            } catch {
                logger.warning("An upload of a file that failed cannot be removed; trying again later", error: error)
            }
        }.value
    }

    static func translating<Value>(
        _ body: () async throws(OwnerFileError) -> Value
    ) async throws(Problem) -> Value {
        do throws(OwnerFileError) {
            return try await body()
        } catch {
            switch error.code {
            case .full: throw Problem(.storageFull, "there is no room for the file at the moment", retryAfter: 60)
            case .tooManyUploads:
                throw Problem(.rateLimited, "other devices of this owner are uploading files", retryAfter: 10)
            case .gone: throw Problem(.conflict, "another upload of this device has taken the place of this one")
            case .unavailable: throw Problem(.notReady, "files cannot be read or stored at the moment")
            }
        }
    }
}
