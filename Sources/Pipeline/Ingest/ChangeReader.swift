import JSON
import SyncModel

/// Reads the elements of a batch's JSON: each is a change in canonical form or is refused.
struct ChangeReader {
    struct Reading {
        /// The owner of the row; `nil` for the caller, also where the element names none.
        let owner: SyncID?
        let result: Result<Change, ChangeRefusal>
    }

    private let schema: IngestSchema
    private let device: Device
    /// ``RulesVersion`` of the batch.
    private let rules: Int
    private var values = ColumnValues()

    init(schema: IngestSchema, device: Device, rules: Int) {
        self.schema = schema
        self.device = device
        self.rules = rules
    }

    /// Reads the element at a position of the batch and adds it to the batch's content.
    mutating func read(_ element: borrowing JSONValue, index: Int, into content: inout BatchContent) -> Reading {
        var fields = ChangeFields(rules: rules)
        do throws(ChangeRefusal) {
            try fields.read(element, schema: schema.schema, device: device)
            var change = try change(element, fields, index: index)
            change.identity = content.add(
                change, owner: fields.owner ?? device.caller, forms: schema.tables[change.table], values: values,
                changeID: fields.changeID)
            return Reading(owner: fields.owner, result: .success(change))
        } catch {
            content.add(refused: element)
            // The owner is needed nevertheless: its part of an atomic batch must know of the refusal.
            return Reading(owner: fields.owner, result: .failure(error))
        }
    }

    private mutating func change(
        _ element: borrowing JSONValue, _ fields: ChangeFields, index: Int
    ) throws(ChangeRefusal) -> Change {
        guard let table = fields.table else { throw .invalidChange("table is missing") }
        guard let id = fields.id else { throw .invalidChange("id is missing") }
        let position: Int
        switch table {
        case .known(let known): position = known
        case .unknown(let name): throw ChangeRefusal(.unknownTable, "the schema has no table \(name)")
        }
        let forms = schema.tables[position]
        try values.read(element, table: schema.schema.tables[position], forms: forms)
        return Change(
            index: index, table: position, id: id, knowledgeID: fields.knowledgeID ?? device.knowledgeID,
            isDelete: fields.isDelete, values: values.rowValues, base: fields.base, ifBase: fields.ifBase,
            isForLiveRow: fields.isForLiveRow, ifUnchanged: fields.ifUnchanged, updatedAt: fields.updatedAt,
            isAltered: values.isAltered || (fields.isUpdatedAtRespelled && forms.showsUpdatedAt))
    }
}
