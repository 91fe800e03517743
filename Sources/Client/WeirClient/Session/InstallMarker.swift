import Foundation

/// A small file that belongs to one installation of the app, by which a database file that was copied or restored from a backup is known.
///
/// It names the database file's installation and its own place on the disk, so that a copy of both is known as well. Two installations that
/// synced as one device would take each other's batches for repeats.
struct InstallMarker {
    let url: URL

    /// Compares the marker with what the database file says, and makes the file another device unless they agree.
    ///
    /// - Parameter name: that of the other device, if the app gives it.
    /// - Returns: whether the file is a copy.
    @discardableResult
    func check(_ file: ClientFile, name: String?) throws -> Bool {
        let database = file.database
        let known = try database.metaText("install").map { String(decoding: $0, as: UTF8.self) }
        let found = try read()
        if let known, found == known { return false }
        // In this order, so that a process that is killed in between finds them different again. Other files have the same marker.
        let new = found ?? UUID().uuidString.lowercased()
        try database.transaction {
            try database.setMeta("install", .text(new))
            guard known != nil else { return }
            let record = SessionRecord(database: database)
            if try file.hasBatch { try file.thawBatch() }
            // What was sent since the copy was made is seen before anything is sent again.
            try record.setMustDrain(true)
            if try record.device != nil { try record.renew(name) }
        }
        if found == nil { try write(new) }
        return known != nil
    }

    /// The installation that the marker names; `nil` if there is none, or if it was copied.
    private func read() throws -> String? {
        let bytes: Data
        do {
            bytes = try Data(contentsOf: url)
        } catch CocoaError.fileReadNoSuchFile {
            return nil
        }
        let parts = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard parts.count == 2, String(parts[1]) == (try place()) else { return nil }
        return String(parts[0])
    }

    private func write(_ installation: String) throws {
        try Data().write(to: url)
        try Data("\(installation) \(place())".utf8).write(to: url)
        #if canImport(Darwin)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            var marker = url
            try marker.setResourceValues(values)
        #endif
    }

    /// The file's number in its file system, which a copy does not share and a move keeps.
    private func place() throws -> String {
        let number = try FileManager.default.attributesOfItem(atPath: url.path)[.systemFileNumber] as? UInt64
        return number.map { String($0) } ?? ""
    }
}
