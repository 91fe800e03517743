import Foundation
import Testing

/// The database file of the device tracker, on a running server.
@Suite(.timeLimit(.minutes(5))) struct TrackerDatabaseTests {
    private func withServer(
        _ settings: [String: String] = [:], _ body: (TrackerScene) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        let weir = try await TrackerScene.start(in: folder, settings)
        try await body(TrackerScene(port: weir.port, folder: folder))
        #expect(await weir.stop() == 0)
    }

    private func client(_ scene: TrackerScene, _ name: String = "phone", owner: String = "abc") -> DeviceClient {
        DeviceClient(port: scene.port, headers: ["X-Sync-Id": owner, "X-Device-Id": name])
    }

    private static func content(_ count: Int, seed: UInt8 = 0) -> Data {
        // A prime, so that no two chunks are the same.
        let block = Data((0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 5 &+ $0 >> 10) &+ seed })
        var content = Data(capacity: count + block.count)
        while content.count < count { content.append(block) }
        return content.prefix(count)
    }

    /// The time of a new row.
    private func till(_ scene: TrackerScene, _ id: String = UUID().uuidString) async throws -> String {
        let time = try await scene.write("other", "note", id, ["title": "A"])
        return TrackerScene.time(time)
    }

    @Test func aNewDeviceStartsFromTheStoredFileAndDownloadsWhatIsMissing() async throws {
        try await withServer { scene in try await scene.restore() }
    }

    @Test func aFileComesBackWithItsDigestTagAndTime() async throws {
        try await withServer { scene in
            let phone = client(scene)
            #expect(try await phone.get(DeviceClient.databasePath).status == 404)
            let (file, time) = (Self.content(700_001), try await till(scene))
            let stored = try await phone.putDatabase(file, till: time)
            #expect(stored.status == 200)
            let verdict = try stored.json()
            #expect(verdict == ["downloadedTill": JSON(time), "bytes": 700_001])
            for method in ["GET", "HEAD"] {
                let answer = try await client(scene, "laptop").send(method, DeviceClient.databasePath, nil)
                #expect(answer.status == 200)
                #expect(answer.body == (method == "GET" ? file : Data()))
                #expect(answer.headers["content-length"] == "700001")
                #expect(answer.headers["etag"] == stored.headers["etag"])
                #expect(answer.headers["downloaded-till"] == time)
                #expect(answer.headers["content-digest"] == DeviceClient.contentDigest(of: file))
                #expect(answer.headers["repr-digest"] == DeviceClient.contentDigest(of: file))
                #expect(answer.headers["accept-ranges"] == "bytes")
            }
            let tag = try #require(stored.headers["etag"])
            let known = try await phone.get(DeviceClient.databasePath, headers: ["If-None-Match": tag])
            #expect(known.status == 304 && known.body.isEmpty)
            // Another owner has none of it.
            #expect(try await client(scene, owner: "xyz").get(DeviceClient.databasePath).status == 404)
            #expect(try await phone.delete(DeviceClient.databasePath).status == 204)
            #expect(try await phone.get(DeviceClient.databasePath).status == 404)
            #expect(try await phone.delete(DeviceClient.databasePath).status == 404)
        }
    }

    /// With the command of docs/operations.md.
    @Test func anOperatorRemovesAnOwnersFile() async throws {
        let command = try #require(
            try WalkThrough.commands(in: "operations").first { $0.contains("/tracker/database") })
        let folder = try TestFolder()
        try folder.write(String(repeating: "s", count: 32), to: "secret")
        func token() async throws -> String {
            let run = try await CommandRun.run(
                ["token", "create", "abc", "--auth.secret-file", "secret"], in: folder)
            return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let weir = try await TrackerScene.start(
            in: folder, ["auth.method": "jwt", "auth.secret-file": folder.path + "/secret"])
        let phone = DeviceClient(
            port: weir.port, headers: ["Authorization": "Bearer \(try await token())", "X-Device-Id": "phone"])
        let note: JSON = ["title": "A", "createdOn": "2026-05-01T08:00:00Z", "updatedOn": "2026-05-01T08:00:00Z"]
        let made = try await phone.send("POST", "/tracker/note", note)
        let time = try #require(try made.json()["updatedOn"].string)
        #expect(try await phone.putDatabase(Self.content(1000), till: time).status == 200)
        let here = command.replacing("https://sync.example.com", with: "http://127.0.0.1:\(weir.port)")
        let run = try await CommandRun.tool(
            ["no_proxy=*", "TOKEN=\(try await token())", "sh", "-c", here], in: folder)
        #expect(run.code == 0 && run.output.isEmpty, "\(here): \(run.output)\(run.errors)")
        #expect(try await phone.get(DeviceClient.databasePath).status == 404)
        #expect(await weir.stop() == 0)
    }

    @Test func aBrokenDownloadIsResumed() async throws {
        try await withServer { scene in
            let phone = client(scene)
            let file = Self.content(5_000_000)
            let time = try await till(scene)
            #expect(try await phone.putDatabase(file, till: time).status == 200)
            let (tag, start) = try await phone.beginDatabase(20_000)
            #expect(start == file.prefix(20_000))
            let rest = try await phone.get(
                DeviceClient.databasePath, headers: ["Range": "bytes=20000-", "If-Range": tag])
            #expect(rest.status == 206)
            #expect(rest.headers["content-range"] == "bytes 20000-4999999/5000000")
            #expect(rest.headers["repr-digest"] == DeviceClient.contentDigest(of: file))
            #expect(rest.headers["content-digest"] == nil)
            #expect(start + rest.body == file)
            let beyond = try await phone.get(DeviceClient.databasePath, headers: ["Range": "bytes=5000000-"])
            #expect(beyond.status == 416)
            #expect(beyond.headers["content-range"] == "bytes */5000000")
            // Of a file that was replaced meanwhile no rest is sent.
            let newer = Self.content(5_000_000, seed: 1)
            let later = try await till(scene)
            #expect(try await phone.putDatabase(newer, till: later).status == 200)
            let whole = try await phone.get(
                DeviceClient.databasePath, headers: ["Range": "bytes=20000-", "If-Range": tag])
            #expect(whole.status == 200)
            #expect(whole.body == newer)
        }
    }

    /// A client that stops reading while its file is replaced gets the beginning of one file, or nothing of the other.
    @Test func aDownloadNeverMixesTwoFiles() async throws {
        try await withServer { scene in
            let phone = client(scene)
            let files = [Self.content(20_000_000), Self.content(20_000_000, seed: 1)]
            let (time, later) = (try await till(scene), try await till(scene))
            #expect(try await phone.putDatabase(files[0], till: time).status == 200)
            let request = phone.request("GET", DeviceClient.databasePath, nil, ["Connection": "close"])
            let port = scene.port
            let connection = try await RawConnection.onThread {
                let connection = try RawConnection(port: port, receiveBuffer: 4096)
                connection.send(request)
                _ = connection.peek(1000)
                return connection
            }
            #expect(try await phone.putDatabase(files[1], till: later).status == 200)
            let received = try await RawConnection.onThread { try connection.rest() }
            let end = try #require(received.range(of: Data("\r\n\r\n".utf8)))
            let body = Data(received[end.upperBound...])
            #expect(body.count < files[0].count)
            #expect(body == files[0].prefix(body.count))
            #expect(try await phone.get(DeviceClient.databasePath).body == files[1])
        }
    }

    @Test func anOlderFileIsRefusedAndTheNewerStays() async throws {
        try await withServer { scene in
            let (first, second) = (try await till(scene), try await till(scene))
            let (phone, laptop) = (client(scene), client(scene, "laptop"))
            let newer = Self.content(300_000)
            #expect(try await phone.putDatabase(newer, till: second).status == 200)
            let older = try await laptop.putDatabase(Self.content(300_000, seed: 1), till: first)
            #expect(older.status == 409)
            #expect(older.headers["downloaded-till"] == second)
            #expect(try older.json()["downloadedTill"] == JSON(second))
            #expect(try await laptop.get(DeviceClient.databasePath).body == newer)
            // One of the same time replaces it.
            let same = Self.content(10, seed: 2)
            #expect(try await laptop.putDatabase(same, till: second).status == 200)
            #expect(try await phone.get(DeviceClient.databasePath).body == same)
        }
    }

    @Test func whatIsNotAsTheRequestSaysIsNotKept() async throws {
        try await withServer(["tracker.file-bytes": "1MiB", "tracker.total-file-bytes": "1500KiB"]) { scene in
            let (phone, time) = (client(scene), try await till(scene))
            let file = Self.content(600_000)
            let wrong = try await phone.putDatabase(
                file, till: time, digest: DeviceClient.contentDigest(of: Data([1])))
            #expect(wrong.status == 400)
            #expect(try wrong.json()["code"] == "digest_mismatch")
            #expect(try await phone.putDatabase(file, till: time, digest: "md5=:AAAA:").status == 422)
            #expect(try await phone.putDatabase(file, till: "yesterday").status == 422)
            let future = try await phone.putDatabase(file, till: "2200-01-01T00:00:00Z")
            #expect(future.status == 422)
            let missing = try await phone.send(
                "PUT", DeviceClient.databasePath, file, ["Content-Digest": DeviceClient.contentDigest(of: file)])
            #expect(missing.status == 422)
            #expect(try await phone.putDatabase(Self.content((1 << 20) + 1), till: time).status == 413)
            let chunked = try await RawConnection.exchange(
                Data(
                    """
                    PUT \(DeviceClient.databasePath)?downloadedTill=\(time) HTTP/1.1\r
                    Host: 127.0.0.1\r\nX-Sync-Id: abc\r\nX-Device-Id: phone\r\nConnection: close\r
                    Content-Digest: \(DeviceClient.contentDigest(of: Data([65])))\r
                    Transfer-Encoding: chunked\r\n\r\n1\r\nA\r\n0\r\n\r\n
                    """.utf8), port: scene.port, finishes: false)
            #expect(try DeviceClient.parse(chunked).status == 411)
            #expect(try await phone.get(DeviceClient.databasePath).status == 404)
            // Nothing of these takes room.
            #expect(try await phone.putDatabase(Self.content(1 << 20), till: time).status == 200)
            let full = try await client(scene, owner: "xyz").putDatabase(file, till: "1970-01-01T00:00:00Z")
            #expect(full.status == 503)
            #expect(try full.json()["code"] == "storage_full")
        }
    }

    @Test func ofUploadsAtTheSameTimeTheNewestStays() async throws {
        try await withServer { scene in
            var times: [String] = []
            for _ in 0..<4 { times.append(try await till(scene)) }
            for _ in 0..<3 {
                let answers = try await withThrowingTaskGroup(of: (Int, DeviceClient.Answer).self) { group in
                    for (number, time) in times.enumerated() {
                        let client = client(scene, "device \(number)")
                        group.addTask {
                            let file = Self.content(1_000_000, seed: UInt8(number))
                            return (number, try await client.putDatabase(file, till: time))
                        }
                    }
                    return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
                }
                #expect(answers.values.allSatisfy { [200, 409].contains($0.status) })
                #expect(answers[3]?.status == 200)
                let current = try await client(scene).get(DeviceClient.databasePath)
                #expect(current.body == Self.content(1_000_000, seed: 3))
                #expect(current.headers["downloaded-till"] == times[3])
            }
        }
    }

    @Test func anUploadThatIsBrokenOffLeavesTheFileBefore() async throws {
        let folder = try TestFolder()
        var weir = try await TrackerScene.start(in: folder)
        let scene = TrackerScene(port: weir.port, folder: folder)
        let (phone, time) = (client(scene), try await till(scene))
        let before = Self.content(900_000)
        #expect(try await phone.putDatabase(before, till: time).status == 200)
        let (newer, later) = (Self.content(3_000_000, seed: 1), try await till(scene))
        let half = phone.request(
            "PUT", "\(DeviceClient.databasePath)?downloadedTill=\(later)", newer,
            ["Content-Digest": DeviceClient.contentDigest(of: newer)])
        // By the client, then by the server's end.
        for _ in 0..<3 {
            try await RawConnection.onThread { [port = weir.port] in
                let connection = try RawConnection(port: port)
                connection.resetAtEnd()
                connection.send(half.prefix(2_000_000))
            }
            #expect(try await phone.get(DeviceClient.databasePath).body == before)
        }
        let open = try await RawConnection.onThread { [port = weir.port] in
            let connection = try RawConnection(port: port)
            connection.send(half.prefix(2_000_000))
            return connection
        }
        _ = await weir.kill()
        withExtendedLifetime(open) {}
        weir = try await TrackerScene.start(in: folder)
        let restarted = DeviceClient(port: weir.port, headers: phone.headers)
        let current = try await restarted.get(DeviceClient.databasePath)
        #expect(current.body == before)
        #expect(current.headers["downloaded-till"] == time)
        #expect(await weir.stop() == 0)
    }

    @Test func aLargeFilePassesThroughInLittleMemory() async throws {
        let folder = try TestFolder()
        let weir = try await TrackerScene.start(in: folder)
        let scene = TrackerScene(port: weir.port, folder: folder)
        let (phone, time) = (client(scene), try await till(scene))
        let file = Self.content(200_000_000)
        #expect(try await phone.putDatabase(Self.content(1_000_000), till: time).status == 200)
        let before = try weir.residentBytes()
        #expect(try await phone.putDatabase(file, till: time).status == 200)
        let answer = try await phone.get(DeviceClient.databasePath)
        #expect(answer.body == file)
        #expect(try weir.residentBytes() - before < 50_000_000)
        #expect(await weir.stop() == 0)
    }

    /// A rate that allows 1 MB at once, and 100 KB a second after it; what a day allows is of the log.
    @Test func aFileWaitsForTheRateAndIsNotRefused() async throws {
        try await withServer([
            "gateway.device-bytes-per-second": "100KiB", "gateway.caller-bytes-per-day": "100KiB",
        ]) { scene in
            let (phone, time) = (client(scene), try await till(scene))
            let file = Self.content(1_300_000)
            let start = ContinuousClock.now
            #expect(try await phone.putDatabase(file, till: time).status == 200)
            // What is above ten seconds' bytes.
            #expect(ContinuousClock.now - start > .seconds(2))
            #expect(try await phone.get(DeviceClient.databasePath).body == file)
        }
    }

    @Test func withoutRoomForFilesThereAreNone() async throws {
        try await withServer(["tracker.file-bytes": "0"]) { scene in
            let phone = client(scene)
            #expect(try await phone.get(DeviceClient.databasePath).status == 404)
            let time = try await till(scene)
            #expect(try await phone.putDatabase(Data([1]), till: time).status == 404)
            #expect(!FileManager.default.fileExists(atPath: scene.folder.path + "/data/files.db"))
        }
    }
}
