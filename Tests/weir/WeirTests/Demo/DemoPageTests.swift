import Foundation
import Testing

/// The demo page in a headless Chromium, which `Tests/Support/Browser` drives: the scenarios are those of `demo_page.py`.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: Chromium.isInstalled, "neither chromium nor google-chrome is installed: deploy/test installs it"))
struct DemoPageTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    private static let schema = root.appending(path: "deploy/schema.yaml").path
    private static let secret = "0123456789abcdef0123456789abcdef"

    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    /// Plays scenarios against a new server, whose files must agree afterwards.
    private func play(
        _ scenarios: String..., arguments: [String] = [], environment: [String: String] = [:]
    ) async throws {
        let weir = try await WeirProcess.start(schema: Self.schema, in: folder, environment: environment)
        let program = Self.root.appending(path: "Tests/Support/Browser/demo_page.py").path
        let names = scenarios.joined(separator: ",")
        let run = try await CommandRun.tool(
            ["python3", "-B", program, "http://127.0.0.1:\(weir.port)", names] + arguments, in: folder)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    @Test func devicesThatWereEditedOfflineAreEqualOnTheScreen() async throws {
        try await play(
            "edits_made_offline_arrive", "edits_of_different_columns_both_survive", "of_one_column_the_last_sync_wins")
    }

    @Test func whatIsNotStoredIsShownAndTheDevicesAreEqualOnTheScreen() async throws {
        try await play(
            "of_one_column_the_later_edit_wins_and_the_other_is_shown",
            "an_edit_of_a_deleted_row_is_shown_and_the_row_stays_deleted", "what_the_server_refuses_is_shown",
            "a_row_that_lacks_a_column_has_its_default",
            "what_the_browser_does_not_keep_is_not_shown_as_stored")
    }

    @Test func devicesSurviveReloadsLostAnswersAndASecondTab() async throws {
        try await play(
            "devices_survive_a_reload", "what_is_lost_is_sent_again_and_applied_once",
            "another_tab_takes_the_devices_over", "a_page_that_waits_for_the_schema_is_taken_over")
    }

    @Test func aDeviceSendsNothingBeforeTheServerLetsIt() async throws {
        try await play(
            "nothing_is_sent_before_retry_after", "no_event_stream_begins_before_retry_after",
            "nothing_is_sent_before_the_retry_after_of_the_event_stream")
    }

    @Test func thePageShowsWhatIsObservedOnEveryScreenAndToTheKeyboard() async throws {
        try await play("stages_are_lit_by_what_is_observed", "everything_has_a_name_and_fits")
    }

    @Test func theDeviceOfThePagePlaysEveryFixtureOfClients() async throws {
        try await play("the_fixtures_of_clients_are_played")
    }

    @Test func eachDeviceHasAToken() async throws {
        try folder.write(Self.secret + "\n", to: "secret")
        var tokens: [String] = []
        for _ in 1...2 {
            let made = try await CommandRun.run("token", "create", "ada", "--auth.secret-file", "secret", in: folder)
            tokens.append(made.output.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        try await play(
            "each_device_has_a_token", "the_tables_are_asked_for_until_they_are_known", arguments: tokens,
            environment: [
                "WEIR_AUTH_METHOD": "jwt", "WEIR_AUTH_SECRET_FILE": "secret", "WEIR_GATEWAY_DEMO": "true",
            ])
    }
}

/// The browser that tests start.
enum Chromium {
    static var isInstalled: Bool { ["chromium", "google-chrome"].contains(where: CommandRun.isInstalled) }
}
