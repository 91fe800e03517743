// Whoever reads JSON writes it, too.
@_exported import JSONText
