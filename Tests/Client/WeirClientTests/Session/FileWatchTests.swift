import Foundation
import TestResources
import Testing
import WeirClient

@Suite(.timeLimit(.minutes(2))) struct FileWatchTests {
    /// What another connection writes, which is the app's.
    @Test(arguments: ["WAL", "DELETE", "TRUNCATE", "PERSIST"]) func eachCommitOfAnotherConnectionIsAnEvent(
        mode: String
    ) async throws {
        let folder = try TemporaryFolder()
        try folder.write([], to: "test.sqlite")
        let database = try Database(path: folder.file())
        try database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
        let watch = try #require(FileWatch(path: folder.file()))
        try database.execute("PRAGMA journal_mode = \(mode)")
        var events = watch.events.makeAsyncIterator()
        for _ in 0..<3 {
            try database.run("INSERT INTO item DEFAULT VALUES")
            #expect(await events.next() != nil)
        }
        // Also of files that are created again.
        database.close()
        let again = try Database(path: folder.file())
        try again.run("INSERT INTO item DEFAULT VALUES")
        #expect(await events.next() != nil)
        again.close()
        watch.end()
        while await events.next() != nil {}
    }

    @Test func otherFilesOfTheFolderAreNoEvents() async throws {
        let folder = try TemporaryFolder()
        try folder.write([], to: "test.sqlite")
        let watch = try #require(FileWatch(path: folder.file()))
        for name in ["other.sqlite", "other.sqlite-wal", "test.sqlite-wa", "est.sqlite-wal"] {
            try folder.write([1], to: name)
        }
        // The last ones of one folder, in their order.
        try folder.write([1], to: "test.sqlite-wal")
        var events = watch.events.makeAsyncIterator()
        #expect(await events.next() != nil)
        watch.end()
        #expect(await events.next() == nil)
    }

    @Test func aFolderThatIsGoneCannotBeWatched() {
        #expect(FileWatch(path: "/nonexistent/test.sqlite") == nil)
    }

    /// The system's lock of the process on the file would be lost with a descriptor of the file that is closed.
    @Test func theDatabaseFileIsNotOpened() async throws {
        let folder = try TemporaryFolder()
        try folder.write([], to: "test.sqlite")
        let path = URL(fileURLWithPath: folder.file()).resolvingSymlinksInPath().path
        let watch = try #require(FileWatch(path: path))
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        // Other tests close theirs meanwhile.
        let open = descriptors.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
        #expect(!open.contains(path))
        watch.end()
    }
}
