import Foundation

/// Controls the disk under a server's data, which Tests/Support/FaultyDisk simulates.
final class FaultyDisk: Sendable {
    /// The offsets of the control file's fields.
    private enum Field: off_t {
        case events = 0
        case sends = 8
        case endAtEvent = 16
        case endAtSend = 24
        case survivors = 32
        case freeBytes = 40
        case isReadOnly = 48
    }

    /// The environment variables of the process.
    let environment: [String: String]
    private let descriptor: Int32

    /// Which writes that were not synced survive the end of the process.
    enum Survivors: Sendable, Hashable {
        /// All: the process was killed.
        case all
        /// None: power was lost before the kernel wrote anything back.
        case none
        /// Some, by the seed.
        case some(UInt64)
    }

    /// A disk for the data of a server in this folder.
    init(under folder: TestFolder) throws {
        let path = folder.path + "/disk"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        let library = try TestedProgram.weir.executable().deletingLastPathComponent().path + "/libFaultyDisk.so"
        let data = URL(fileURLWithPath: folder.path).resolvingSymlinksInPath().path + "/data/"
        environment = [
            "LD_PRELOAD": library, "FAULTY_DISK_CONTROL": path, "FAULTY_DISK_FOLDER": data,
            // A crash ends the process without a backtrace, which takes long.
            "SWIFT_BACKTRACE": "enable=no",
        ]
        ftruncate(descriptor, 56)
        freeBytes = .max
    }

    deinit { close(descriptor) }

    /// Writes, syncs and sends so far.
    var events: UInt64 { self[.events] }

    /// Whether the process has reached the planned end.
    var hasEnded: Bool {
        (self[.endAtEvent] > 0 && events >= self[.endAtEvent])
            || (self[.endAtSend] > 0 && self[.sends] >= self[.endAtSend])
    }

    /// By how many bytes the files may grow.
    var freeBytes: Int64 {
        get { Int64(bitPattern: self[.freeBytes]) }
        set { self[.freeBytes] = UInt64(bitPattern: newValue) }
    }

    /// Whether every write fails.
    var isReadOnly: Bool {
        get { self[.isReadOnly] != 0 }
        set { self[.isReadOnly] = newValue ? 1 : 0 }
    }

    /// Ends the process after so many more writes, syncs and sends.
    func end(afterEvents count: UInt64, leaving survivors: Survivors) {
        prepare(survivors)
        self[.endAtEvent] = events + count
    }

    /// Ends the process after so many more sends.
    func end(afterSends count: UInt64, leaving survivors: Survivors) {
        prepare(survivors)
        self[.endAtSend] = self[.sends] + count
    }

    private func prepare(_ survivors: Survivors) {
        self[.endAtEvent] = 0
        self[.endAtSend] = 0
        self[.survivors] =
            switch survivors {
            case .all: 0
            case .none: 1
            case .some(let seed): max(seed, 2)
            }
    }

    private subscript(field: Field) -> UInt64 {
        get {
            var value: UInt64 = 0
            let count = pread(descriptor, &value, 8, field.rawValue)
            precondition(count == 8, "the control file cannot be read")
            return value
        }
        set {
            var value = newValue
            let count = pwrite(descriptor, &value, 8, field.rawValue)
            precondition(count == 8, "the control file cannot be written")
        }
    }
}
