import Commands
import YAML

/// A value in force and where it comes from.
struct ResolvedSetting: Sendable {
    /// The typed value; `nil` where the declaration's default applies.
    let value: (any Sendable)?
    let shown: String
    let origin: ConfigurationOrigin
}

/// Collects what the sources say about every key, and everything that is wrong with it.
struct ConfigurationResolver {
    /// The sources in ascending precedence.
    private enum Source {
        case file, environment, flag
    }

    /// What a source says about a key.
    private struct Candidate {
        let source: Source
        let text: ConfigurationText
        let origin: ConfigurationOrigin
        /// Whether the text names a file that holds the value.
        let namesFile: Bool
    }

    /// A key, or the companion that names its file.
    private struct Target {
        let index: Int
        let namesFile: Bool
    }

    let schema: ConfigurationSchema
    let sources: ConfigurationSources
    private(set) var problems: [ConfigurationProblem] = []
    /// The values in force; `nil` where a required key is not set, a value is refused or in a file that was not opened yet.
    private(set) var values: [ResolvedSetting?] = []

    /// What the sources say about each key, in ascending precedence.
    private var candidates: [[Candidate]]
    /// The files that hold a secret, by key, until they are opened.
    private var secretFiles: [Int: (path: String, candidate: Candidate)] = [:]
    // By bytes, since these names are compared with what comes from outside.
    private var names: [[UInt8]: Target] = [:]
    private var sections: Set<[UInt8]> = []
    private var variables: [[UInt8]: Target] = [:]
    private var flags: [[UInt8]: Target] = [:]

    init(_ schema: ConfigurationSchema, _ sources: ConfigurationSources) {
        self.schema = schema
        self.sources = sources
        candidates = Array(repeating: [], count: schema.keys.count)
        for (index, key) in schema.keys.enumerated() {
            for name in key.names {
                let target = Target(index: index, namesFile: name != key.name)
                let bytes = Array(name.utf8)
                names[bytes] = target
                variables[Array(schema.variable(for: name).utf8)] = target
                if target.namesFile || !key.declaration.isSecret { flags[bytes] = target }
                for (end, byte) in bytes.enumerated() where byte == UInt8(ascii: ".") {
                    sections.insert(Array(bytes[..<end]))
                }
            }
            if let short = key.shortFlag { flags[Array(short.utf8)] = Target(index: index, namesFile: false) }
        }
    }

    /// Reads every source and checks every value, also one that another overrides; opens no file of a secret.
    mutating func collect() {
        readFile()
        let prefix = schema.variable(for: "").utf8
        let fileVariable = schema.variable(for: ConfigurationSchema.fileKey).utf8
        let given = sources.environment.filter { $0.key.utf8.starts(with: prefix) }
            .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        for (name, value) in given where !name.utf8.elementsEqual(fileVariable) {
            if let target = variables[Array(name.utf8)] {
                add(.environment, .one(value), .variable(name), to: target)
            } else {
                let known = schema.keys.flatMap(\.names).map { schema.variable(for: $0) }
                report(
                    nil, .variable(name),
                    "is no setting" + Self.suggestion(NearestName.find(name, among: known)))
            }
        }
        for flag in sources.flags where !flag.name.utf8.elementsEqual(ConfigurationSchema.fileKey.utf8) {
            guard let target = flags[Array(flag.name.utf8)] else {
                let known = flags.keys.map { String(decoding: $0, as: UTF8.self) }.sorted()
                let nearest = NearestName.find(flag.name, among: known).map { "--\($0)" }
                report(nil, .flag(flag.name), "is no setting" + Self.suggestion(nearest))
                continue
            }
            let key = schema.keys[target.index]
            if let value = flag.value ?? (key.declaration.isBoolean ? "true" : nil) {
                add(.flag, .one(value), .flag(flag.name), to: target)
            } else {
                report(key.name, .flag(flag.name), "a value is missing")
            }
        }
        for index in schema.keys.indices { values.append(resolve(index)) }
    }

    private mutating func resolve(_ index: Int) -> ResolvedSetting? {
        let key = schema.keys[index]
        guard let last = candidates[index].last else {
            return switch key.declaration.default {
            case .value(let text): ResolvedSetting(value: nil, shown: text, origin: .default)
            case .none: ResolvedSetting(value: nil, shown: "", origin: .default)
            case .required: nil
            }
        }
        var value: ResolvedSetting?
        for candidate in candidates[index] where !candidate.namesFile { value = check(candidate, of: key) }
        guard last.namesFile else { return value }
        if let path = last.text.one.flatMap({ ConfigurationType.path.parse(.one($0)) }) {
            secretFiles[index] = (path, last)
        } else {
            report(key.fileName, last.origin, "expected a path")
        }
        return nil
    }

    /// The value in force; opens the file that holds it, if it is in one.
    mutating func value(of index: Int) -> ResolvedSetting? {
        if let (path, candidate) = secretFiles.removeValue(forKey: index) {
            values[index] = readSecret(path, candidate, of: schema.keys[index])
        }
        return values[index]
    }

    /// Whether a source says anything about a key, be it right or wrong.
    func isGiven(_ index: Int) -> Bool { !candidates[index].isEmpty }

    /// Adds a problem, once.
    mutating func report(_ problem: ConfigurationProblem) {
        if !problems.contains(problem) { problems.append(problem) }
    }

    private mutating func report(_ key: String?, _ origin: ConfigurationOrigin?, _ explanation: String) {
        report(ConfigurationProblem(key: key, origin: origin, explanation: explanation))
    }

    private mutating func add(
        _ source: Source, _ text: ConfigurationText, _ origin: ConfigurationOrigin, to target: Target
    ) {
        if let last = candidates[target.index].last, last.source == source {
            report(schema.keys[target.index].name, origin, "is given already, by \(last.origin)")
            return
        }
        candidates[target.index].append(
            Candidate(source: source, text: text, origin: origin, namesFile: target.namesFile))
    }

    private mutating func check(_ candidate: Candidate, of key: ConfigurationSchema.Key) -> ResolvedSetting? {
        if let parsed = key.declaration.parse(candidate.text) {
            return ResolvedSetting(value: parsed.value, shown: parsed.shown, origin: candidate.origin)
        }
        let written =
            switch candidate.text {
            case _ where key.declaration.hidesRefused: "the value"
            case .one(let text): "\"\(text.prefix(100))\""
            case .many: "the list"
            }
        report(key.name, candidate.origin, "\(written) is not allowed; expected \(key.declaration.expected)")
        return nil
    }

    /// Reads the first line of the file that a companion key names.
    private mutating func readSecret(
        _ path: String, _ candidate: Candidate, of key: ConfigurationSchema.Key
    ) -> ResolvedSetting? {
        let origin = ConfigurationOrigin.secretFile(path: path, namedBy: candidate.origin)
        do throws(FileFault) {
            // A secret takes one line; 64 KiB leave space for whatever a deployment writes after it.
            let bytes = try sources.readFile(path, 64 << 10)
            var line = bytes.prefix { $0 != UInt8(ascii: "\n") }
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            guard let text = String(validating: line, as: UTF8.self) else {
                throw FileFault(code: 0, message: "the first line is not UTF-8")
            }
            let secret = Candidate(source: candidate.source, text: .one(text), origin: origin, namesFile: false)
            return check(secret, of: key)
        } catch {
            report(key.fileName, origin, "cannot be read: \(error.message)")
            return nil
        }
    }
}

extension ConfigurationResolver {
    private mutating func readFile() {
        let key = ConfigurationSchema.fileKey.utf8
        let variable = schema.variable(for: ConfigurationSchema.fileKey).utf8
        let named =
            sources.flags.first { $0.name.utf8.elementsEqual(key) }?.value
            ?? sources.environment.first { $0.key.utf8.elementsEqual(variable) }?.value
        guard let path = named ?? sources.defaultFile else { return }
        let limits = YAMLLimits()
        let bytes: [UInt8]
        do throws(FileFault) {
            bytes = try sources.readFile(path, limits.bytes)
        } catch {
            if named != nil || !error.isAbsent { report(nil, nil, "\(path): cannot be read: \(error.message)") }
            return
        }
        do throws(YAMLError) {
            guard let root = try YAMLDocument(bytes, limits: limits).root, root.scalar?.isNull != true else { return }
            if let mapping = root.mapping {
                walk(mapping, under: "", path: path)
            } else {
                report(nil, .file(path: path, position: root.position), "expected a mapping, found \(root.kind)")
            }
        } catch {
            report(nil, .file(path: path, position: error.position), error.message)
        }
    }

    private mutating func walk(_ mapping: YAMLMapping, under section: String, path: String) {
        for entry in mapping.entries {
            let name = ConfigurationSchema.join(section, entry.key.text)
            let bytes = Array(name.utf8)
            let keyOrigin = ConfigurationOrigin.file(path: path, position: entry.key.position)
            let origin = ConfigurationOrigin.file(path: path, position: entry.value.position)
            if let target = names[bytes] {
                if let text = text(of: entry.value, name: name, origin: origin) {
                    add(.file, text, origin, to: target)
                }
            } else if sections.contains(bytes) {
                if let inner = entry.value.mapping {
                    walk(inner, under: name, path: path)
                } else if entry.value.scalar?.isNull != true {
                    report(name, origin, "expected a mapping of keys, found \(entry.value.kind)")
                }
            } else {
                report(name, keyOrigin, "is no setting" + Self.suggestion(nearestName(to: name)))
            }
        }
    }

    private mutating func text(of node: YAMLNode, name: String, origin: ConfigurationOrigin) -> ConfigurationText? {
        switch node.content {
        case .scalar(let scalar) where !scalar.isNull:
            return .one(scalar.text)
        case .sequence(let elements):
            let texts = elements.compactMap { $0.scalar.flatMap { $0.isNull ? nil : $0.text } }
            if texts.count == elements.count { return .many(texts) }
            report(name, origin, "a list holds texts alone")
        case .scalar:
            report(name, origin, "has no value; leave the key out where the default is meant")
        case .mapping:
            report(name, origin, "expected a value, found a mapping")
        }
        return nil
    }

    /// The key or section that may be meant, also where only the scope was forgotten.
    private func nearestName(to name: String) -> String? {
        let known = schema.keys.flatMap(\.names)
        let suffix = Array(".\(name)".utf8)
        return known.first { $0.utf8.suffix(suffix.count).elementsEqual(suffix) }
            ?? NearestName.find(name, among: known + sections.map { String(decoding: $0, as: UTF8.self) }.sorted())
    }

    private static func suggestion(_ name: String?) -> String {
        name.map { "; did you mean \($0)?" } ?? ""
    }
}
