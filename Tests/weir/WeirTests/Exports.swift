// Runs of the programs, folders and JSON values, which the tests of all programs share.
@_exported import ProgramRun
