import Configuration
import Testing

/// How values are read and written.
@Suite struct ConfigurationTypeTests {
    @Test(arguments: [
        ("0", Duration.zero), ("250ms", .milliseconds(250)), ("10s", .seconds(10)), ("2m", .seconds(120)),
        ("1h", .seconds(3600)), ("1d", .seconds(86_400)), ("5us", .microseconds(5)), ("7ns", .nanoseconds(7)),
    ])
    func readsDurations(_ text: String, _ duration: Duration) {
        let type = ConfigurationType.duration(in: .zero...(.seconds(1_000_000)))
        #expect(type.parse(.one(text)) == duration)
        #expect(type.render(duration) == text)
    }

    @Test(arguments: ["", "s", "-1s", "1.5s", "1 s", "10", "1S", "1s ", "9999999999999999999s", "300000000d"])
    func refusesWhatIsNoDuration(_ text: String) {
        #expect(ConfigurationType.duration(in: .zero...(.seconds(1 << 33))).parse(.one(text)) == nil)
    }

    @Test(arguments: [("1B", 1), ("1KiB", 1024), ("4MiB", 4 << 20), ("3GiB", 3 << 30), ("1TiB", 1 << 40)])
    func readsByteSizes(_ text: String, _ count: Int) {
        let type = ConfigurationType.byteSize(in: 0...(1 << 50))
        #expect(type.parse(.one(text)) == count)
        #expect(type.parse(.one("\(count)")) == count)
        #expect(type.render(count) == text)
        #expect(ConfigurationType.byteSize(in: 0...Int.max).parse(.one("9999999TiB")) == nil)
    }

    @Test(arguments: [
        "localhost:80", "127.0.0.1:0", "[::1]:65535", "[fe80::1%eth0]:9", "kafka-1.internal:9092",
    ])
    func readsAddresses(_ text: String) {
        #expect(NetworkAddress(text)?.description == text)
    }

    @Test(arguments: [
        "", ":80", "localhost", "localhost:", "localhost:65536", "localhost:+1", "::1:80", "[::1]", "[localhost]:80",
        "a b:80", "a/b:80", "[]:80", "localhost:-1", "localhost:000080",
    ])
    func refusesWhatIsNoAddress(_ text: String) {
        #expect(NetworkAddress(text) == nil)
    }

    @Test func readsListsFromTextsAndSequences() {
        let type = ConfigurationType<[String]>.list()
        #expect(type.parse(.one("a, b ,c")) == ["a", "b", "c"])
        #expect(type.parse(.one("")) == [])
        #expect(type.parse(.many(["a b", "c"])) == ["a b", "c"])
        #expect(type.parse(.one("a,,b")) == nil)
        #expect(type.parse(.one("a,")) == nil)
        #expect(type.parse(.many(["a,b"])) == nil)
        #expect(type.parse(.many([""])) == nil)
    }
}
