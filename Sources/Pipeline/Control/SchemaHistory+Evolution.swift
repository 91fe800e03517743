import SyncModel
import SyncWire

extension SchemaHistory {
    /// The history with declared tables as its newest version, which they may be already.
    ///
    /// - Throws: ``ControlError/incompatibleSchema(_:)`` when the tables would lose data of the newest version.
    package func evolved(to declared: [Table]) throws(ControlError) -> SchemaHistory {
        let resolved: Schema
        do throws(SchemaRefusal) {
            if let newest {
                resolved = try newest.schema.evolved(to: declared)
            } else {
                resolved = try Schema(declaring: declared)
            }
        } catch {
            throw .incompatibleSchema(error)
        }
        if let newest, resolved == newest.schema { return self }
        var next = self
        next.append(Entry(version: SchemaVersion(ordinal: entries.count + 1, of: resolved), schema: resolved))
        return next
    }
}
