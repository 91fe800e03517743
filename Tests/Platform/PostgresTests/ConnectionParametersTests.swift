import Postgres
import Testing

struct ConnectionParametersTests {
    @Test(arguments: [
        ("host=db.example.org", "verify-full"), ("host=/run/postgresql", nil), ("host=localhost", nil),
        ("hostaddr=10.0.0.1", "verify-full"), ("host=db.example.org sslmode=require", "require"), ("dbname=x", nil),
        ("host=db.example.org hostaddr=127.0.0.1", nil), ("host=/run,db.example.org", "verify-full"),
    ])
    func aServerOnANetworkIsVerified(text: String, mode: String?) throws {
        #expect(try ConnectionParameters(text).verifyingServers()["sslmode"] == mode)
    }

    @Test func describesTheDatabaseWithoutThePassword() throws {
        let parameters = try ConnectionParameters("postgresql://me:hunter2@db.example.org:5433/tables?sslmode=require")
        #expect("\(parameters)" == "host=db.example.org port=5433 dbname=tables user=me")
        var dumped = ""
        dump(parameters, to: &dumped)
        #expect(!dumped.contains("hunter2"))
    }

    @Test(arguments: ["hunter2", "host=a hunter2", "password='hunter2", "postgresql://a:%zz@hunter2/"])
    func anInvalidTextIsRejectedWithoutQuotingIt(text: String) {
        let error = #expect(throws: ConnectionStringError.self) { try ConnectionParameters(text) }
        #expect(error.map { "\($0)".contains("hunter2") } == false)
    }
}
