import Dispatch
import Foundation

/// Notices that connections of any process write to a database file, without a look at it from time to time.
///
/// What is watched are the files beside it that a commit writes, `-wal` or `-journal`, and their folder. A descriptor of the database file
/// itself is never opened, since closing it would drop the locks that SQLite has in this process.
///
/// An event says that something was written, not that it was committed: a commit can be seen a moment later, when it was synced to disk.
package final class FileWatch: Sendable {
    /// An element for each time that something was written; several in a row may be one.
    package let events: AsyncStream<Void>
    private let event: AsyncStream<Void>.Continuation
    private let source: Source

    /// Begins to watch.
    ///
    /// - Returns: `nil` if the system cannot, such as where it has run out of watches.
    package init?(path: String) {
        let url = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        let (events, event) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        guard let source = Source(url, { event.yield() }) else { return nil }
        (self.events, self.event, self.source) = (events, event, source)
    }

    deinit { end() }

    /// Ends the events.
    package func end() {
        source.cancel()
        event.finish()
    }
}

#if canImport(Darwin)
    extension FileWatch {
        /// Events of the files' descriptors.
        ///
        /// Sendable, since its state is used on its queue alone.
        private final class Source: @unchecked Sendable {
            private let queue = DispatchQueue(label: "weir.watch")
            private let files: [String]
            private let onWrite: @Sendable () -> Void
            private var folder: (any DispatchSourceFileSystemObject)?
            private var sources: [String: any DispatchSourceFileSystemObject] = [:]

            init?(_ url: URL, _ onWrite: @escaping @Sendable () -> Void) {
                files = ["-wal", "-journal"].map { url.path + $0 }
                self.onWrite = onWrite
                let found = Self.source(url.deletingLastPathComponent().path, .write, queue)
                guard let found else { return nil }
                folder = found
                // Files appear and are removed.
                found.setEventHandler { [weak self] in self?.written() }
                found.activate()
                queue.async { self.watchFiles() }
            }

            func cancel() {
                queue.async { [self] in
                    folder?.cancel()
                    for source in sources.values { source.cancel() }
                    (folder, sources) = (nil, [:])
                }
            }

            private func written() {
                watchFiles()
                onWrite()
            }

            private func watchFiles() {
                for file in files where folder != nil && sources[file] == nil {
                    guard let source = Self.source(file, [.write, .extend, .delete, .rename], queue) else { continue }
                    sources[file] = source
                    source.setEventHandler { [weak self] in
                        guard let self, let source = sources[file] else { return }
                        if !source.data.isDisjoint(with: [.delete, .rename]) {
                            source.cancel()
                            sources[file] = nil
                        }
                        written()
                    }
                    source.activate()
                }
            }

            private static func source(
                _ path: String, _ events: DispatchSource.FileSystemEvent, _ queue: DispatchQueue
            ) -> (any DispatchSourceFileSystemObject)? {
                let descriptor = open(path, O_EVTONLY | O_CLOEXEC)
                guard descriptor >= 0 else { return nil }
                let source = DispatchSource.makeFileSystemObjectSource(
                    fileDescriptor: descriptor, eventMask: events, queue: queue)
                source.setCancelHandler { close(descriptor) }
                return source
            }
        }
    }
#elseif os(Linux) || os(Android)
    extension FileWatch {
        /// Events of the folder, with the names of the files (inotify(7)).
        ///
        /// Sendable, since Dispatch's sources may be cancelled on any thread.
        private final class Source: @unchecked Sendable {
            private let source: any DispatchSourceRead

            init?(_ url: URL, _ onWrite: @escaping @Sendable () -> Void) {
                let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
                guard descriptor >= 0 else { return nil }
                let mask = IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO
                let folder = url.deletingLastPathComponent().path
                guard inotify_add_watch(descriptor, folder, UInt32(mask)) >= 0 else {
                    close(descriptor)
                    return nil
                }
                let names = Set(["-wal", "-journal"].map { url.lastPathComponent + $0 })
                source = DispatchSource.makeReadSource(
                    fileDescriptor: descriptor, queue: DispatchQueue(label: "weir.watch"))
                source.setEventHandler { if Self.readEvents(descriptor, of: names) { onWrite() } }
                source.setCancelHandler { close(descriptor) }
                source.activate()
            }

            func cancel() { source.cancel() }

            /// Reads all events that there are.
            ///
            /// - Returns: whether one is of these files, or some were lost.
            private static func readEvents(_ descriptor: Int32, of names: Set<String>) -> Bool {
                var found = false
                var buffer = [UInt8](repeating: 0, count: 4096)
                while true {
                    let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
                    guard count > 0 else { return found }
                    buffer.withUnsafeBytes { bytes in
                        let header = MemoryLayout<inotify_event>.size
                        var position = 0
                        while position + header <= count {
                            let event = bytes.loadUnaligned(fromByteOffset: position, as: inotify_event.self)
                            let name = bytes[(position + header)...].prefix(Int(event.len)).prefix { $0 != 0 }
                            if event.mask & UInt32(IN_Q_OVERFLOW) != 0
                                || names.contains(String(decoding: name, as: UTF8.self))
                            {
                                found = true
                            }
                            position += header + Int(event.len)
                        }
                    }
                }
            }
        }
    }
#else
    extension FileWatch {
        /// Other systems are looked at.
        private final class Source: Sendable {
            init?(_ url: URL, _ onWrite: @escaping @Sendable () -> Void) { return nil }
            func cancel() {}
        }
    }
#endif
