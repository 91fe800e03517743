import Commands
import JSONText
import SyncModel
import YAML

/// Converts the document's nodes to tables and collects all problems.
struct SchemaFileReader {
    let limits: OutcomeLimits
    private(set) var problems: [SchemaFileError.Problem] = []
    /// Positions of tables and columns, for problems that are found later.
    private var tablePlaces: [String: YAMLPosition] = [:]
    private var columnPlaces: [String: YAMLPosition] = [:]

    init(_ limits: OutcomeLimits) { self.limits = limits }

    mutating func add(_ problem: SchemaProblem) {
        let table = problem.table.flatMap { tablePlaces[$0] }
        let column = problem.column.flatMap { columnPlaces["\(problem.table ?? "").\($0)"] }
        add(column ?? table, problem.description)
    }

    private mutating func add(_ position: YAMLPosition?, _ message: String) {
        problems.append(.init(position: position, message: message))
    }

    mutating func read(_ document: YAMLDocument) -> [Table] {
        guard let root = document.root, !(root.scalar?.isNull ?? false) else {
            add(nil, "the file is empty; it must begin with tables:")
            return []
        }
        guard let mapping = root.mapping else {
            add(root.position, "expected a mapping with the key tables, found \(root.kind)")
            return []
        }
        checkKeys(mapping, ["tables"], of: "the file")
        guard let tables = mapping["tables"] else {
            add(root.position, "the key tables is missing")
            return []
        }
        guard let entries = tables.mapping?.entries else {
            add(tables.position, "tables must be a mapping of names, found \(tables.kind)")
            return []
        }
        return entries.compactMap { table($0) }
    }

    private mutating func table(_ entry: YAMLMapping.Entry) -> Table? {
        let name = entry.key.text
        tablePlaces[name] = entry.key.position
        guard let mapping = entry.value.mapping else {
            add(entry.value.position, "the table \(name) must be a mapping with columns, found \(entry.value.kind)")
            return nil
        }
        checkKeys(mapping, ["policy", "columns"], of: "the table \(name)")
        let policy = mapping["policy"].flatMap { self.policy($0) } ?? Policy.lastSyncWins
        guard let columns = mapping["columns"] else {
            add(entry.key.position, "the table \(name) has no columns")
            return nil
        }
        guard let entries = columns.mapping?.entries else {
            add(columns.position, "columns must be a mapping of names, found \(columns.kind)")
            return nil
        }
        let table = Table(name: name, policy: policy, columns: entries.compactMap { column($0, table: name) })
        // A column without a default is null in a new row.
        let size = table.columns.reduce(0) { $0 + ($1.defaultValue?.count ?? 4) }
        if size > limits.maxRowBytes {
            add(
                entry.key.position,
                "the defaults of the table \(name) have \(size) bytes together, a row at most \(limits.maxRowBytes)")
        }
        return table
    }

    private mutating func policy(_ node: YAMLNode) -> Policy? {
        let names = Policy.allCases.map(\.rawValue)
        if let text = node.scalar?.text, let policy = Policy(rawValue: text) { return policy }
        add(
            node.position,
            "policy must be one of \(names.joined(separator: ", "))" + suggestion(node.scalar?.text, names))
        return nil
    }

    private mutating func column(_ entry: YAMLMapping.Entry, table: String) -> Column? {
        let name = entry.key.text
        columnPlaces["\(table).\(name)"] = entry.key.position
        // `birthday: date` is short for `birthday: { type: date }`.
        if entry.value.scalar != nil { return type(entry.value).map { Column(name: name, type: $0) } }
        guard let mapping = entry.value.mapping else {
            add(entry.value.position, "the column \(name) must be a type or a mapping, found \(entry.value.kind)")
            return nil
        }
        checkKeys(
            mapping, ["type", "nullable", "default", "length", "references", "onDelete"], of: "the column \(name)")
        guard let typeNode = mapping["type"] else {
            add(entry.key.position, "the column \(name) has no type")
            return nil
        }
        let isNullable = mapping["nullable"].flatMap { boolean($0, "nullable") } ?? true
        let length = mapping["length"].flatMap { integer($0, "length") }
        let references = mapping["references"].flatMap { text($0, "references") }
        let onDelete = mapping["onDelete"].flatMap { deleteRule($0) }
        guard let type = type(typeNode) else { return nil }
        let bare = Column(
            name: name, type: type, isNullable: isNullable, maximumLength: length, references: references,
            onDelete: onDelete)
        guard let node = mapping["default"] else { return bare }
        guard let value = DefaultValue(maximumBytes: limits.maxValueBytes).canonical(node, for: bare, &problems) else {
            return bare
        }
        return Column(
            name: name, type: type, isNullable: isNullable, defaultValue: value, maximumLength: length,
            references: references, onDelete: onDelete)
    }

    private mutating func deleteRule(_ node: YAMLNode) -> DeleteRule? {
        let names = DeleteRule.allCases.map(\.rawValue)
        if let text = node.scalar?.text, let rule = DeleteRule(rawValue: text) { return rule }
        add(
            node.position,
            "onDelete must be \(names.joined(separator: ", "))" + suggestion(node.scalar?.text, names))
        return nil
    }

    private mutating func type(_ node: YAMLNode) -> ColumnType? {
        guard let text = node.scalar?.text, let type = ColumnType(text) else {
            let text = node.scalar?.text
            add(
                node.position,
                "a type must be one of \(ColumnType.names.joined(separator: ", "))" + suggestion(text, ColumnType.names)
            )
            return nil
        }
        return type
    }

    // MARK: Scalars

    private mutating func boolean(_ node: YAMLNode, _ key: String) -> Bool? {
        if let boolean = node.scalar?.boolean { return boolean }
        add(node.position, "\(key) must be true or false, found \(node.kind)")
        return nil
    }

    private mutating func integer(_ node: YAMLNode, _ key: String) -> Int? {
        if let integer = node.scalar?.integer { return Int(integer) }
        add(node.position, "\(key) must be an integer, found \(node.kind)")
        return nil
    }

    private mutating func text(_ node: YAMLNode, _ key: String) -> String? {
        if let scalar = node.scalar, !scalar.isNull { return scalar.text }
        add(node.position, "\(key) must be a name, found \(node.kind)")
        return nil
    }

    private mutating func checkKeys(_ mapping: YAMLMapping, _ known: [String], of element: String) {
        for entry in mapping.entries where !known.contains(where: { $0.utf8.elementsEqual(entry.key.text.utf8) }) {
            let message = "\(element) has no key \(entry.key.text)" + suggestion(entry.key.text, known)
            add(entry.key.position, message)
        }
    }

    private func suggestion(_ text: String?, _ known: [String]) -> String {
        guard let text, let nearest = NearestName.find(text, among: known) else { return "" }
        return "; did you mean \(nearest)?"
    }
}

extension ColumnType {
    static let names = [
        "text", "integer", "real", "boolean", "decimal(p,s)", "uuid", "timestamp", "date", "bytes", "json",
    ]

    /// The bounds of `decimal` are validated with the table.
    init?(_ text: String) {
        switch text {
        case "text": self = .text
        case "integer": self = .integer
        case "real": self = .real
        case "boolean": self = .boolean
        case "uuid": self = .uuid
        case "timestamp": self = .timestamp
        case "date": self = .date
        case "bytes": self = .bytes
        case "json": self = .json
        default:
            let bytes = Array(text.utf8)
            guard bytes.starts(with: "decimal(".utf8), bytes.last == UInt8(ascii: ")") else { return nil }
            let numbers = bytes.dropFirst(8).dropLast().split(separator: UInt8(ascii: ","))
                .map { String(decoding: $0.filter { $0 != UInt8(ascii: " ") }, as: UTF8.self) }.map { Int($0) }
            guard numbers.count == 2, let precision = numbers[0], let scale = numbers[1] else { return nil }
            self = .decimal(precision: precision, scale: scale)
        }
    }
}
