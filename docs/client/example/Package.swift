// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "contacts",
    // The folder of Weir's own package; an app names a URL and a version.
    dependencies: [.package(name: "weir", path: "../../..")],
    targets: [
        // The app's way to SQLite; GRDB and SQLite.swift bring theirs.
        .systemLibrary(name: "CSQLite3"),
        .executableTarget(name: "contacts", dependencies: ["CSQLite3", .product(name: "WeirClient", package: "weir")]),
        .testTarget(name: "ContactsTests", dependencies: ["contacts", .product(name: "WeirTesting", package: "weir")]),
    ]
)
