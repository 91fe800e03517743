import Foundation
import Ingest
import JSON
import JSONText
import SyncModel
import WeirClient

/// The one form that the server has of each value: devices may spell the same time or number differently.
package struct ValueForms: Sendable {
    private struct Form: Sendable {
        let column: Column
        let type: WeirClient.ColumnType
    }

    private struct Name: Hashable {
        let table: String
        let column: String
    }

    private let forms: [Name: Form]
    private let parsers = JSONParserPool()

    /// - Parameter tables: the server's. Values of other tables and columns are compared as SQLite has them.
    package init(_ tables: [Table]) {
        var forms: [Name: Form] = [:]
        for table in tables {
            for column in table.columns {
                let name = Name(table: table.name.lowercased(), column: column.name.lowercased())
                forms[name] = Form(column: column, type: WeirClient.ColumnType(column.type))
            }
        }
        self.forms = forms
    }

    /// A value for comparing and for reading; as an SQL literal where the server has no such value.
    package func text(of value: SQLValue, table: String, column: String) -> String {
        let name = Name(table: table.lowercased(), column: column.lowercased())
        guard let form = forms[name], value != .null else { return value.description }
        do {
            var json = JSONWriter()
            try WireValue.write(value, as: form.type, to: &json)
            let bytes = json.take()
            return try parsers.withParser(for: bytes.count) { parser throws(any Error) in
                var canonical: [UInt8] = []
                try parser.withDocument(bytes.span) { document in
                    _ = try form.column.appendCanonical(document.root, maximumBytes: .max, to: &canonical)
                }
                return String(decoding: canonical, as: UTF8.self)
            }
        } catch {
            // It is pending and cannot be sent, which is reported with what is pending.
            return value.description
        }
    }
}

extension WeirClient.ColumnType {
    fileprivate init(_ type: SyncModel.ColumnType) {
        self =
            switch type {
            case .text: .text
            case .integer: .integer
            case .real: .real
            case .boolean: .boolean
            case .decimal: .decimal
            case .uuid: .uuid
            case .timestamp: .timestamp
            case .date: .date
            case .bytes: .bytes
            case .json: .json
            }
    }
}
