import Foundation
import Testing
import WeirClient

/// A server in memory for one device: it applies changes, and records an issue where one does not fit what it has.
struct ModelServer {
    struct Row {
        var timeStamp: Int64
        var isDeleted: Bool
        /// JSON, by column.
        var values: [String: String]
    }

    private(set) var tables: [String: [String: Row]] = [:]
    /// Columns of a table that hold ids of another: `["item": ["list": "list"]]`.
    let references: [String: [String: String]]

    init(references: [String: [String: String]]) { self.references = references }

    /// The rows that are not deleted.
    func live(_ table: String) -> [String: [String: String]] {
        (tables[table] ?? [:]).filter { !$0.value.isDeleted }.mapValues(\.values)
    }

    /// Applies a change.
    ///
    /// - Parameter isOrdered: whether the row's parents must be there, and a deleted row's children must not.
    mutating func apply(_ json: String, timeStamp: Int64, isOrdered: Bool) throws {
        let change = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        let table = try #require(change["table"] as? String)
        let id = try #require(change["id"] as? String)
        let base = try #require(change["base"] as? NSNumber).int64Value
        let row = tables[table]?[id]
        #expect(base == row?.timeStamp ?? 0, "\(json) is not based on \(String(describing: row))")
        if change["deleted"] as? Bool == true {
            #expect(row?.isDeleted == false, "\(json) deletes \(String(describing: row))")
            tables[table, default: [:]][id] = Row(timeStamp: timeStamp, isDeleted: true, values: [:])
            if isOrdered { try expectNoChildren(of: table, id) }
            return
        }
        let sent = try #require(change["values"] as? [String: Any]).mapValues(Self.text)
        let isUpdate = row?.isDeleted == false && change["ifBase"] == nil
        if isUpdate {
            // A change of the type alone, from 1 to 1.0, is the same JSON.
            for (name, value) in sent where name != "any" {
                #expect(row?.values[name] != value, "\(json) sends \(name), which has not changed")
            }
        }
        let values = isUpdate ? row?.values.merging(sent) { $1 } ?? [:] : sent
        tables[table, default: [:]][id] = Row(timeStamp: timeStamp, isDeleted: false, values: values)
        guard isOrdered else { return }
        for (column, parent) in references[table] ?? [:] {
            guard let name = values[column], name != "null" else { continue }
            let id = name.trimmingCharacters(in: ["\""])
            #expect(live(parent)[id] != nil, "\(json) comes before its parent")
        }
    }

    private func expectNoChildren(of table: String, _ id: String) throws {
        for (child, columns) in references {
            for (column, parent) in columns where parent == table {
                let children = live(child).filter { $0.value[column]?.trimmingCharacters(in: ["\""]) == id }
                #expect(children.isEmpty, "\(table) \(id) is deleted before \(children)")
            }
        }
    }

    /// A value as JSON with one spelling.
    static func text(_ value: Any) -> String {
        do {
            return String(
                decoding: try JSONSerialization.data(withJSONObject: value, options: [.fragmentsAllowed, .sortedKeys]),
                as: UTF8.self)
        } catch {
            return "\(error)"
        }
    }
}
