import Commands
import Configuration
import Postgres
import PostgresRecordStore
import Testing

struct ConfigurationTests {
    private func load(_ environment: [String: String]) throws -> PostgresRecordStoreConfiguration {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(PostgresRecordStoreConfiguration.self, as: "postgres", "The tables.")
        return try schema.load(from: ConfigurationSources(environment: environment)) { $0.read() }.settings
    }

    @Test func addsThePasswordToEachDatabase() throws {
        let read = try load([
            "WEIR_POSTGRES_SHARDS": "host=a dbname=x, postgresql://me@b/y", "WEIR_POSTGRES_PASSWORD": "hunter2",
            "WEIR_POSTGRES_CONNECTIONS": "3", "WEIR_POSTGRES_STALLED_AFTER": "250ms",
        ])
        #expect(read.shards.map { $0["host"] } == ["a", "b"])
        #expect(read.shards.map { $0["dbname"] } == ["x", "y"])
        #expect(read.shards.map { $0["password"] } == ["hunter2", "hunter2"])
        #expect(read.connections == 3)
        #expect(read.stalledAfter == .milliseconds(250))
        #expect(try load([:]).shards.map { $0["dbname"] } == ["weir"])
    }

    @Test(arguments: ["postgresql://me:hunter2@a/x", "host=a password=hunter2", "hunter2 hunter2", "a://hunter2"])
    func rejectsAnInvalidConnectionStringOrOneWithAPasswordWithoutQuotingIt(text: String) {
        let problems = #expect(throws: ConfigurationProblems.self) { try load(["WEIR_POSTGRES_SHARDS": text]) }
        #expect(problems.map { "\($0)".contains("without passwords") } == true)
        #expect(problems.map { "\($0)".contains("hunter2") } == false)
    }
}
