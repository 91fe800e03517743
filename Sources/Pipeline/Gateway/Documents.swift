import HTTP

/// What the gateway serves about itself, to anybody.
enum Documents {
    /// The answer of `/openapi.json`: the contract.
    static var openAPI: HTTPResponse { .json(200, PackageResources.openapi_json) }

    /// The answer of `/docs/errors.md`: what the `type` of a problem points into.
    static var errors: HTTPResponse {
        HTTPResponse(
            status: 200, headers: [HTTPField("Content-Type", "text/markdown; charset=utf-8")],
            body: PackageResources.errors_md, isCompressible: true)
    }
}
