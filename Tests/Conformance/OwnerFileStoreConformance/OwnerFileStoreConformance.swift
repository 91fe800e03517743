import OwnerFileStore
import SyncModel
import Testing

/// The behaviour of every store of owners' files, as cases that use only the port.
package enum OwnerFileStoreConformance {
    /// Of the store of a case: room for two files of 40 chunks.
    package static let limits = OwnerFileLimits(totalBytes: 80 * OwnerFile.chunkSize)

    package static let cases = [
        ConformanceCase("a file is read as it was stored") { store in
            #expect(try await store.file(of: ann) == nil)
            let content = content(3 * OwnerFile.chunkSize + 5, seed: 1)
            let file = try await put(content, "phone", 7, store)
            #expect(file.byteCount == content.count)
            #expect(file.newest == TimeStamp(7))
            #expect(file.digest == digest(1))
            #expect(try await store.file(of: ann) == file)
            #expect(try await read(file, store) == content)
            #expect(try await store.chunk(4, of: file) == nil)
            #expect(try await store.file(of: ben) == nil)
        },
        ConformanceCase("an empty file is a file") { store in
            let file = try await put([], "phone", 1, store)
            #expect(file.byteCount == 0)
            #expect(try await store.chunk(0, of: file) == nil)
        },
        ConformanceCase("an upload is no file before it is complete") { store in
            let before = try await put(content(10, seed: 1), "phone", 1, store)
            let upload = try await store.begin(device("laptop"), byteCount: OwnerFile.chunkSize)
            try await store.append(content(OwnerFile.chunkSize, seed: 2), number: 0, to: upload)
            #expect(try await store.file(of: ann) == before)
            try await store.discard(upload)
            #expect(try await store.file(of: ann) == before)
            #expect(try await read(before, store) == content(10, seed: 1))
            await expect(.gone) { _ = try await store.commit(upload, newest: TimeStamp(2), digest: digest(2)) }
            await expect(.gone) { try await store.append([1], number: 1, to: upload) }
        },
        ConformanceCase("a newer file replaces the one before, whose chunks are gone") { store in
            let first = try await put(content(40 * OwnerFile.chunkSize, seed: 1), "phone", 5, store)
            let second = try await put(content(100, seed: 2), "laptop", 5, store)
            #expect(second.generation != first.generation)
            #expect(try await store.file(of: ann) == second)
            #expect(try await store.chunk(0, of: first) == nil)
            #expect(try await store.chunk(39, of: first) == nil)
            #expect(try await read(second, store) == content(100, seed: 2))
            // All of the room is free again.
            _ = try await put(content(79 * OwnerFile.chunkSize, seed: 3), "phone", 6, store)
        },
        ConformanceCase("an older file is refused, and the newer stays") { store in
            let newer = try await put(content(20, seed: 1), "phone", 5, store)
            let upload = try await store.begin(device("laptop"), byteCount: 30)
            try await store.append(content(30, seed: 2), number: 0, to: upload)
            let result = try await store.commit(upload, newest: TimeStamp(4), digest: digest(2))
            #expect(result == .older(than: newer))
            #expect(try await read(newer, store) == content(20, seed: 1))
            await expect(.gone) { _ = try await store.commit(upload, newest: TimeStamp(9), digest: digest(2)) }
        },
        ConformanceCase("of uploads at the same time the newest counts, whatever their order") { store in
            for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
                var uploads: [OwnerFileUpload] = []
                for number in 0..<3 {
                    let upload = try await store.begin(device("device \(number)"), byteCount: 8)
                    try await store.append(content(8, seed: number), number: 0, to: upload)
                    uploads.append(upload)
                }
                for number in order {
                    _ = try await store.commit(
                        uploads[number], newest: TimeStamp(Int64(10 + number)), digest: digest(number))
                }
                let file = try #require(try await store.file(of: ann))
                #expect(file.newest == TimeStamp(12))
                #expect(try await read(file, store) == content(8, seed: 2))
                #expect(try await store.remove(ann))
            }
        },
        ConformanceCase("a device that begins again gives up its upload") { store in
            let first = try await store.begin(device("phone"), byteCount: 70 * OwnerFile.chunkSize)
            try await store.append(content(OwnerFile.chunkSize, seed: 1), number: 0, to: first)
            // There would be no room for both.
            let second = try await store.begin(device("phone"), byteCount: 70 * OwnerFile.chunkSize)
            await expect(.gone) { try await store.append([1], number: 1, to: first) }
            try await store.discard(second)
            _ = try await store.begin(device("phone"), byteCount: 80 * OwnerFile.chunkSize)
        },
        ConformanceCase("uploads count for the room from their begin on") { store in
            let upload = try await store.begin(device("phone"), byteCount: 80 * OwnerFile.chunkSize)
            await expect(.full) { _ = try await store.begin(device("phone", of: ben), byteCount: 1) }
            try await store.discard(upload)
            _ = try await store.begin(device("phone", of: ben), byteCount: 1)
            await expect(.full) {
                _ = try await store.begin(device("phone"), byteCount: 80 * OwnerFile.chunkSize)
            }
        },
        ConformanceCase("an owner has few uploads at a time") { store in
            for number in 0..<limits.uploadsOfOwner { _ = try await store.begin(device("\(number)"), byteCount: 1) }
            await expect(.tooManyUploads) { _ = try await store.begin(device("more"), byteCount: 1) }
            _ = try await store.begin(device("phone", of: ben), byteCount: 1)
            _ = try await store.begin(device("1"), byteCount: 1)
        },
        ConformanceCase("a removed owner has neither file nor uploads") { store in
            let file = try await put(content(20 * OwnerFile.chunkSize, seed: 1), "phone", 1, store)
            let other = try await put(content(9, seed: 2), "phone", 1, store, of: ben)
            let upload = try await store.begin(device("laptop"), byteCount: 10 * OwnerFile.chunkSize)
            #expect(try await store.remove(ann))
            #expect(try await store.file(of: ann) == nil)
            #expect(try await store.chunk(0, of: file) == nil)
            await expect(.gone) { _ = try await store.commit(upload, newest: TimeStamp(2), digest: digest(2)) }
            #expect(try await store.remove(ann) == false)
            #expect(try await read(other, store) == content(9, seed: 2))
            _ = try await store.begin(device("phone"), byteCount: 79 * OwnerFile.chunkSize)
        },
        ConformanceCase("idle uploads are collected, and files are not") { store in
            let file = try await put(content(9, seed: 1), "phone", 1, store)
            let upload = try await store.begin(device("phone"), byteCount: 79 * OwnerFile.chunkSize)
            try await store.collect(idleFor: 3600)
            try await store.append([1], number: 0, to: upload)
            try await store.collect(idleFor: 0)
            await expect(.gone) { try await store.append([1], number: 1, to: upload) }
            _ = try await store.begin(device("phone"), byteCount: 79 * OwnerFile.chunkSize)
            #expect(try await read(file, store) == content(9, seed: 1))
        },
    ]

    package static let ann = SyncID(unchecked: "ann")
    private static let ben = SyncID(unchecked: "ben")

    private static func device(_ id: String, of owner: SyncID = ann) -> Device {
        Device(caller: owner, knowledgeID: KnowledgeID(unchecked: id))
    }

    private static func content(_ count: Int, seed: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 3 &+ $0 >> 8 &+ seed &* 101) }
    }

    private static func digest(_ seed: Int) -> [UInt8] { [UInt8](repeating: UInt8(seed), count: 32) }

    /// Stores a file whose digest is that of seed 1.
    package static func put(
        _ content: [UInt8], _ name: String, _ newest: Int64, _ store: any OwnerFileStore, of owner: SyncID = ann
    ) async throws -> OwnerFile {
        let upload = try await store.begin(device(name, of: owner), byteCount: content.count)
        var rest = content[...]
        var number = 0
        while !rest.isEmpty {
            try await store.append(Array(rest.prefix(OwnerFile.chunkSize)), number: number, to: upload)
            rest = rest.dropFirst(OwnerFile.chunkSize)
            number += 1
        }
        let result = try await store.commit(upload, newest: TimeStamp(newest), digest: digest(1))
        guard case .stored(let file) = result else { throw Refused(result: result) }
        return file
    }

    private struct Refused: Error {
        let result: OwnerFileCommit
    }

    package static func read(_ file: OwnerFile, _ store: any OwnerFileStore) async throws -> [UInt8] {
        var content: [UInt8] = []
        var number = 0
        while content.count < file.byteCount {
            content += try #require(try await store.chunk(number, of: file))
            number += 1
        }
        return content
    }

    private static func expect(_ code: OwnerFileError.Code, _ body: () async throws -> Void) async {
        let error = await #expect(throws: OwnerFileError.self) { try await body() }
        #expect(error?.code == code)
    }
}

/// One behaviour that a store must have.
package struct ConformanceCase: Sendable, CustomStringConvertible {
    package let description: String
    private let body: @Sendable (any OwnerFileStore) async throws -> Void

    init(_ description: String, _ body: @escaping @Sendable (any OwnerFileStore) async throws -> Void) {
        self.description = description
        self.body = body
    }

    /// Runs the case on an empty store, and closes it.
    package func run(_ store: any OwnerFileStore) async throws {
        let outcome: Result<Void, any Error>
        do {
            try await body(store)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await store.close()
        try outcome.get()
    }
}
