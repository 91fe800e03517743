import Configuration
import FanOut
import Gateway
import Ingest
import Ordering
import SQLiteChangeLog
import SQLiteRecordStore

/// Log and tables in the SQLite files of one folder.
package struct EmbeddedSettings: Sendable {
    package private(set) var folder: String
    package var changeLog: SQLiteChangeLogConfiguration
    package var store: SQLiteRecordStoreConfiguration

    /// The defaults, without a reserve on the disk.
    package init(folder: String) {
        self.folder = folder
        changeLog = SQLiteChangeLogConfiguration(path: "")
        store = SQLiteRecordStoreConfiguration()
        move(to: folder)
    }

    package init(_ reader: ConfigurationReader) {
        folder = reader.read(\PipelineConfiguration.data)
        changeLog = reader.read()
        store = reader.read()
        move(to: folder)
    }

    package mutating func move(to folder: String) {
        self.folder = folder
        changeLog.path = folder + "/log.db"
        store.path = folder + "/tables.db"
    }
}

/// The settings of all stages.
package struct StageSettings: Sendable {
    package var limits: LimitsConfiguration
    package var gateway: GatewayConfiguration
    package var authentication: AuthenticationConfiguration
    package var ingest: IngestConfiguration
    package var ordering: OrderingConfiguration
    package var fanOut: FanOutConfiguration
    package var faces: FacesConfiguration

    /// The defaults, with streams in a folder.
    package init(folder: String) {
        limits = LimitsConfiguration()
        gateway = GatewayConfiguration()
        authentication = AuthenticationConfiguration()
        ingest = IngestConfiguration()
        ordering = OrderingConfiguration()
        faces = FacesConfiguration()
        fanOut = FanOutConfiguration(directory: folder)
    }

    package init(_ reader: ConfigurationReader) {
        limits = reader.read()
        gateway = reader.read()
        authentication = reader.read()
        ingest = reader.read()
        ordering = reader.read()
        faces = reader.read()
        fanOut = faces.applied(to: reader.read())
        fanOut.directory = reader.read(\PipelineConfiguration.data)
    }
}
