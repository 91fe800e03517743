#if os(Linux)
    import Foundation
    import Testing

    /// The disk runs full, or refuses writes: uploads are refused, and everything goes on by itself when it has room again.
    @Suite(.timeLimit(.minutes(2))) struct DiskTests {
        private static let settings = ["ordering.retry-delay": "1ms"]

        /// A device that uploads, and remembers what was acknowledged.
        private struct Uploader {
            let client: DeviceClient
            var acknowledged = 0

            init(_ weir: WeirProcess) { client = DeviceClient(port: weir.port, syncID: "abc") }

            /// Uploads the next batch.
            mutating func upload() async throws -> DeviceClient.Answer {
                let change = TestDevice.change(
                    "row", ["name": JSON(String(repeating: "x", count: 20_000)), "email": JSON("\(acknowledged + 1)")])
                let answer = try await client.post(
                    "/v1/upload",
                    ["knowledgeId": "k1", "batch": JSON(acknowledged + 1), "changes": JSON([change.value])])
                if answer.status == 202 { acknowledged += 1 }
                return answer
            }

            /// Uploads until the server refuses; what it says then.
            mutating func uploadUntilRefused() async throws -> DeviceClient.Answer {
                while true {
                    let answer = try await upload()
                    if answer.status != 202 { return answer }
                }
            }

            /// Uploads again and again until the server takes it.
            mutating func uploadUntilTaken() async throws {
                while try await upload().status != 202 {}
            }

            /// Waits until all that was acknowledged can be pulled; every batch counted once.
            func expectEverything() async throws {
                // Each attempt waits for the outcome as long as the server lets it.
                var pull: DeviceClient.Answer
                repeat {
                    pull = try await client.post("/v1/pull", ["knowledgeId": "k1", "include": [JSON(acknowledged)]])
                    #expect([200, 503, 504].contains(pull.status))
                } while pull.status != 200
                let rows = try pull.json()["changes"]
                #expect(rows[0]["version"].int == acknowledged)
                #expect(rows[0]["values"]["email"].string == "\(acknowledged)")
            }
        }

        private static func code(_ answer: DeviceClient.Answer) throws -> String? { try answer.json()["code"].string }

        @Test func uploadsLeaveRoomForWhatWasAcknowledged() async throws {
            let folder = try TestFolder()
            let disk = try FaultyDisk(under: folder)
            let weir = try await TestServer.start(
                in: folder, settings: Self.settings.merging(["changelog.reserve-bytes": "8MiB"]) { $1 },
                environment: disk.environment)
            var uploader = Uploader(weir)
            disk.room = 9 << 20
            let refusal = try await uploader.uploadUntilRefused()
            #expect(refusal.status == 503)
            #expect(try Self.code(refusal) == "storage_full")
            #expect(refusal.headers["retry-after"] != nil)
            #expect(uploader.acknowledged > 0)
            #expect(await weir.hasLogged("Uploads cannot be appended"))
            #expect(await weir.hasLogged("room than the reserve"))
            // Everything is carried through although there is no more room than before.
            try await uploader.expectEverything()
            #expect(disk.room > 0)
            #expect(!weir.log.contains { $0.contains("tried again") || $0.contains("starts again") })

            disk.room = .max
            #expect(try await uploader.upload().status == 202)
            try await uploader.expectEverything()
            #expect(await weir.stop() == 0)
        }

        @Test(arguments: [0, 200_000, 1_000_000, 3_000_000])
        func aFullDiskLosesNothingAndNeedsNoRestart(room: Int64) async throws {
            let folder = try TestFolder()
            let disk = try FaultyDisk(under: folder)
            let weir = try await TestServer.start(
                in: folder, settings: Self.settings.merging(["changelog.reserve-bytes": "0"]) { $1 },
                environment: disk.environment)
            var uploader = Uploader(weir)
            try await uploader.uploadUntilTaken()
            disk.room = room
            let refusal = try await uploader.uploadUntilRefused()
            #expect(refusal.status == 503)
            #expect(try Self.code(refusal) == "storage_full")
            #expect(await weir.hasLogged("Uploads cannot be appended"))

            disk.room = .max
            try await uploader.uploadUntilTaken()
            try await uploader.expectEverything()
            #expect(await weir.hasLogged("Uploads are appended again"))
            #expect(await weir.stop() == 0)
        }

        @Test func aDiskThatBecomesReadOnlyLosesNothingAndNeedsNoRestart() async throws {
            let folder = try TestFolder()
            let disk = try FaultyDisk(under: folder)
            let weir = try await TestServer.start(in: folder, settings: Self.settings, environment: disk.environment)
            var uploader = Uploader(weir)
            for _ in 0..<3 { try await uploader.uploadUntilTaken() }
            disk.isReadOnly = true
            let refusal = try await uploader.uploadUntilRefused()
            #expect(refusal.status == 503)
            #expect(try Self.code(refusal) == "not_ready")
            #expect(await weir.hasLogged("Uploads cannot be appended"))

            disk.isReadOnly = false
            try await uploader.uploadUntilTaken()
            try await uploader.expectEverything()
            #expect(await weir.stop() == 0)
        }
    }
#endif
