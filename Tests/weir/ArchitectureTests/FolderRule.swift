/// Which folders of `Sources` the targets of a folder may import; docs/architecture.md explains why.
enum FolderRule {
    private static let imports: [String: Set<String>] = [
        "CLibraries": [],
        "Platform": ["Platform", "CLibraries"],
        "Model": ["Model", "Platform", "CLibraries"],
        "Ports": ["Ports", "Model", "Platform"],
        "Pipeline": ["Ports", "Model", "Platform", "CLibraries"],
        "Faces": ["Ports", "Model", "Platform"],
        "Client": ["Client"],
        "Composition": ["Faces", "Pipeline", "Adapters", "Ports", "Model", "Platform"],
        "Adapters": ["Adapters", "Ports", "Model", "Platform", "CLibraries"],
        "Assurance": everything,
        "weir": everything,
    ]

    private static let everything: Set<String> = [
        "Assurance", "weir", "Client", "Composition", "Faces", "Pipeline", "Adapters", "Ports", "Model", "Platform",
        "CLibraries",
    ]

    /// What every stage may import although it is in `Pipeline`: the supervision of partitions that the stages share.
    private static let sharedByStages: Set<String> = ["PartitionSupervision"]

    /// The stage whose requests faces translate.
    private static let servedByFaces: Set<String> = ["Gateway"]

    /// What the library for apps may import: none of it needs more than SQLite and Swift's standard library.
    static let neededByClient: Set<String> = ["CWeirSQLite", "JSONText"]

    /// What the program in `Client` needs besides.
    private static let neededByDeviceProgram: Set<String> = ["Commands"]

    static var folders: Set<String> { Set(imports.keys) }

    /// The rule as the document's table states it.
    static var stated: [String: Set<String>] {
        imports.merging(
            ["Pipeline": sharedByStages, "Faces": servedByFaces, "Client": neededByClient.union(neededByDeviceProgram)]
        ) { $0.union($1) }
    }

    /// Why a target may not import another one; `nil` where it may.
    static func objection(to imported: Repository.DeclaredTarget, from target: Repository.DeclaredTarget) -> String? {
        guard let allowed = imports[target.folder] else {
            return
                "Sources/\(target.folder) is no folder of the architecture: \(folders.sorted().joined(separator: ", "))"
        }
        if allowed.contains(imported.folder) { return nil }
        if target.folder == "Pipeline", sharedByStages.contains(imported.name) { return nil }
        if target.folder == "Client", neededByClient.union(neededByDeviceProgram).contains(imported.name) { return nil }
        if target.folder == "Faces", servedByFaces.contains(imported.name) { return nil }
        let list = allowed.isEmpty ? "nothing" : allowed.sorted().joined(separator: ", ")
        return """
            \(target.path) imports \(imported.path), but targets in \(target.folder) may import \(list) only \
            (docs/architecture.md)
            """
    }
}
