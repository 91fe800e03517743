// The producers, readers and members that the log hands out.
@_exported import LocalLog
