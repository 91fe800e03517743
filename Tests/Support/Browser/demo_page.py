#!/usr/bin/env python3
"""Uses the demo page as people do: demo_page.py URL SCENARIO,... [ARGUMENT...]. Each scenario has a new browser profile, and an owner of its
own. Prints what is wrong, and fails."""
import glob, os, sys
from chromium import Browser
from demo import BOTH, CONTRAST, LAPTOP, PHONE, Demo, contains, equal


def edits_made_offline_arrive(demo):
    """Two devices, one of them offline; an edit on each; both are equal on the screen once both are online."""
    ada, grace = demo.add(PHONE, name="Ada Lovelace"), demo.add(PHONE, name="Grace Hopper")
    demo.settled()
    demo.toggle(PHONE)
    demo.edit(PHONE, ada, email="ada@example.org")
    alan = demo.add(PHONE, name="Alan Turing")
    demo.edit(LAPTOP, grace, name="Grace Murray Hopper")
    demo.settled(LAPTOP)
    equal(demo.pending(PHONE), 2)
    contains(demo.text(f"{PHONE} .state"), "offline, 2 edits wait")
    equal((demo.value(PHONE, grace, "name"), demo.value(LAPTOP, ada, "email")), ("Grace Hopper", ""))
    equal(demo.ids(LAPTOP), [ada, grace])
    assert not demo.rows_on_screen(PHONE).shows_the_same_as(demo.rows_on_screen(LAPTOP))
    demo.toggle(PHONE)
    demo.expect_equal_on_screen()
    for device in BOTH:
        equal([demo.value(device, id, "name") for id in (ada, grace, alan)], ["Ada Lovelace", "Grace Murray Hopper", "Alan Turing"])
        equal(demo.value(device, ada, "email"), "ada@example.org")
        equal(demo.not_stored(device), "")


def edits_of_different_columns_both_survive(demo):
    ada = demo.add(PHONE, name="Ada")
    demo.settled()
    demo.toggle(*BOTH)
    demo.edit(PHONE, ada, name="Ada Lovelace")
    demo.edit(LAPTOP, ada, email="ada@example.org")
    demo.toggle(*BOTH)
    demo.expect_equal_on_screen()
    for device in BOTH:
        equal((demo.value(device, ada, "name"), demo.value(device, ada, "email")), ("Ada Lovelace", "ada@example.org"))
        equal(demo.not_stored(device), "")


def of_one_column_the_last_sync_wins(demo):
    ada = demo.add(PHONE, name="Ada")
    demo.settled()
    demo.toggle(*BOTH)
    demo.edit(PHONE, ada, name="From the phone")
    demo.edit(LAPTOP, ada, name="From the laptop")
    demo.toggle(LAPTOP)
    demo.settled(LAPTOP)
    demo.toggle(PHONE)
    demo.expect_equal_on_screen()
    for device in BOTH:
        equal(demo.value(device, ada, "name"), "From the phone")


def of_one_column_the_later_edit_wins_and_the_other_is_shown(demo):
    """In a table with lastWriteWins; what was not stored can be sent again."""
    demo.table("list")
    demo.add(PHONE, title="Groceries")
    demo.table("task")
    demo.page.evaluate(f"document.querySelector('{PHONE} .add [data-column=list] select').focus()")
    demo.page.type_ahead("Groceries")
    task = demo.add(PHONE, title="Milk")
    demo.settled()
    for device in BOTH:
        equal(demo.page.evaluate(f"document.querySelector(`{device} [data-id='{task}'] select`).selectedOptions[0].text"), "Groceries")
    demo.toggle(*BOTH)
    demo.edit(PHONE, task, title="Oat milk")
    demo.edit(LAPTOP, task, title="Almond milk")
    demo.toggle(LAPTOP)
    demo.settled(LAPTOP)
    demo.toggle(PHONE)
    demo.expect_equal_on_screen()
    for device in BOTH:
        equal(demo.value(device, task, "title"), "Almond milk")
    equal(demo.not_stored(LAPTOP), "")
    contains(demo.not_stored(PHONE), "conflict", "title: Oat milk", "the server has Almond milk")
    demo.page.click(f"{PHONE} .asides button")
    demo.until_value(LAPTOP, task, "title", "Oat milk")
    demo.expect_equal_on_screen()
    equal(demo.not_stored(PHONE), "")


def an_edit_of_a_deleted_row_is_shown_and_the_row_stays_deleted(demo):
    ada, grace = demo.add(PHONE, name="Ada"), demo.add(PHONE, name="Grace")
    demo.settled()
    demo.toggle(*BOTH)
    demo.delete(PHONE, ada)
    contains(demo.text(f"{PHONE} [data-id='{ada}']"), "deletion waiting")
    demo.edit(LAPTOP, ada, email="ada@example.org")
    demo.toggle(PHONE)
    demo.settled(PHONE)
    demo.toggle(LAPTOP)
    demo.expect_equal_on_screen()
    for device in BOTH:
        equal(demo.ids(device), [grace])
    equal(demo.not_stored(PHONE), "")
    contains(demo.not_stored(LAPTOP), "deleted", "email: ada@example.org")
    demo.page.click(f"{LAPTOP} .asides button:nth-of-type(2)")
    demo.until(f"!document.querySelector('{LAPTOP} .asides').checkVisibility()")
    equal(demo.ids(LAPTOP), [grace])


def what_the_server_refuses_is_shown(demo):
    demo.table("task")
    task = demo.page.evaluate(f"(() => {{ const card = weir.entries[0].card; card.act(() => card.entry.device.put('task', 't1', "
                              "{ list: 'l1', title: 'Milk' })); return 't1'; })()")
    demo.settled()
    demo.page.click(f"{PHONE} [data-id={task}] .more")
    demo.edit(PHONE, task, estimate="soon")
    demo.settled()
    contains(demo.not_stored(PHONE), "invalid_value", "estimate: soon")
    equal(demo.value(PHONE, task, "estimate"), "")


def a_row_that_lacks_a_column_has_its_default(demo):
    """It was last written before its table had the columns; NULL that was written is none."""
    demo.table("list")
    demo.settled()
    for name, values, color in ("l1", "{ title: 'Home' }", "gray"), ("l2", "{ title: 'Work', color: null }", ""):
        demo.page.evaluate(f"(() => {{ const {{ card }} = weir.entries[0], {{ device }} = card.entry; card.act(() => device.transaction(() => "
                           f"device.write({{ syncId: device.state.syncId, table: 'list', id: '{name}', timeStamp: 1, deleted: false, "
                           f"values: {values}, writer: {{ syncId: 'ada', knowledgeId: 'other' }} }}))); }})()")
        demo.until_value(PHONE, name, "color", color)


def devices_survive_a_reload(demo):
    ada = demo.add(PHONE, name="Ada")
    demo.settled()
    names = "weir.entries.map((e) => e.device.state.knowledgeId)"
    before = demo.page.evaluate(names)
    demo.toggle(PHONE)
    demo.edit(PHONE, ada, name="Ada Lovelace")
    demo.page.reload()
    demo.ready()
    equal(demo.page.evaluate(names), before)
    equal((demo.pending(PHONE), demo.value(PHONE, ada, "name"), demo.value(LAPTOP, ada, "name")), (1, "Ada Lovelace", "Ada"))
    demo.toggle(PHONE)
    demo.expect_equal_on_screen()
    equal(demo.value(LAPTOP, ada, "name"), "Ada Lovelace")
    # Beginning again removes the devices, and the new ones get what the server has.
    demo.page.click("#begin-again")
    demo.page.load(lambda: demo.page.press("Enter", 13, "\r"))
    demo.ready().settled()
    assert not set(demo.page.evaluate(names)) & set(before)
    for device in BOTH:
        demo.until_value(device, ada, "name", "Ada Lovelace")


def what_is_lost_is_sent_again_and_applied_once(demo):
    """The answer to an upload is lost; then there is no network for a while."""
    page, ada = demo.page, demo.add(PHONE, name="Ada")
    demo.settled()
    page.hold("*/v1/upload")
    demo.edit(PHONE, ada, name="Ada Lovelace")
    page.lose(page.held())
    page.release_all()
    demo.until_value(LAPTOP, ada, "name", "Ada Lovelace")
    demo.expect_equal_on_screen()
    journey = "weir.journeys.all.find((j) => j.number === 2)"
    equal(page.evaluate(f"[{journey}.attempts, {journey}.results[0].status, {journey}.results[0].version]"), [2, "applied", 2])
    page.connect(False)
    demo.edit(PHONE, ada, email="ada@example.org")
    contains(demo.until(f"document.querySelector('{PHONE}[data-state=retrying] .state')?.innerText"), "no answer", "1 edit waits")
    page.connect(True)
    demo.until_value(LAPTOP, ada, "email", "ada@example.org")
    demo.expect_equal_on_screen()
    page.complaints = [c for c in page.complaints if "net::ERR_" not in c]


class Requests:
    """Those of the phone, with the times at which they are sent. Begins a new event stream, which the test can end."""

    def __init__(self, demo):
        self.demo, self.page = demo, demo.page
        self.page.evaluate("""(() => {
            const { server } = weir.entries[0], { fetch, watch } = weir.unrecorded ??= { fetch: server.fetch, watch: server.watch };
            Object.assign(weir, { requests: [], endedStreams: 0 });
            server.fetch = (url, options) => {
                weir.requests.push([url.pathname, performance.now()]);
                if (url.pathname !== "/v1/watch") return fetch(url, options);
                weir.stream = new AbortController();
                return fetch(url, { ...options, signal: AbortSignal.any([options.signal, weir.stream.signal]) });
            };
            server.watch = (...given) => watch.apply(server, given).finally(() => setTimeout(() => { weir.endedStreams++; }));
        })()""")
        demo.toggle(PHONE, PHONE)
        demo.settled()

    def paths(self):
        return [path for path, _ in self.page.evaluate("weir.requests")]

    def wait(self, condition):
        """Looks again and again, since not all of it is shown."""
        self.page.evaluate(f"new Promise((resolve) => {{ const look = () => setTimeout({condition} ? resolve : look); look(); }})")

    def end_stream(self, end=None):
        """Ends it, or does what ends it, and waits until the device knows."""
        ended = self.page.evaluate("weir.endedStreams")
        result = (end or (lambda: self.page.evaluate("weir.stream.abort()")))()
        self.wait(f"weir.endedStreams > {ended}")
        return result

    def refuse(self, answer, seconds):
        """Answers 429. Returns the time before which nothing may be sent."""
        time = self.page.evaluate("performance.now()") + 1000 * seconds
        self.page.replace(answer, 429, {"title": "Too Many Requests", "code": "rate_limited"}, Retry_After=seconds)
        return time

    def refuse_upload(self, row):
        """Refuses the upload of an edit for 3 seconds. Returns the requests until then, and that time."""
        self.page.hold("*/v1/upload")
        self.demo.edit(PHONE, row, name="Ada Lovelace")
        answer, sent = self.page.held(), self.paths()
        time = self.refuse(answer, 3)
        self.page.release_all()
        return sent, time

    def expect_none_after(self, count, time):
        """All but the first ones were sent after a time."""
        later = self.page.evaluate("weir.requests")[count:]
        assert later and min(at for _, at in later) >= time, (time, later)
        self.page.complaints = [c for c in self.page.complaints if "429" not in c]


def nothing_is_sent_before_retry_after(demo):
    """A server that is too busy names a time: whatever happens until then, the device waits."""
    page, ada = demo.page, demo.add(PHONE, name="Ada")
    demo.settled()
    requests = Requests(demo)
    sent, time = requests.refuse_upload(ada)
    contains(demo.until(f"document.querySelector('{PHONE}[data-state=retrying] .state')?.innerText"), "tries again", "1 edit waits")
    demo.edit(PHONE, ada, email="ada@example.org")
    demo.edit(LAPTOP, ada, birthday="1815-12-10")  # of which the event stream tells the phone
    page.evaluate("dispatchEvent(new Event('online'))")
    demo.toggle(PHONE, PHONE)
    demo.until_value(LAPTOP, ada, "email", "ada@example.org")
    demo.expect_equal_on_screen()
    requests.expect_none_after(len(sent), time)
    equal(requests.paths().count("/v1/upload"), 3)  # the batch twice, and that of the second edit


def no_event_stream_begins_before_retry_after(demo):
    """The time is that of an upload's answer, and the event stream ends before it."""
    ada = demo.add(PHONE, name="Ada")
    demo.settled()
    requests = Requests(demo)
    sent, time = requests.refuse_upload(ada)
    demo.until(f"document.querySelector('{PHONE}').matches('[data-state=retrying]')")
    requests.end_stream()
    requests.wait("weir.requests.filter(([path]) => path === '/v1/watch').length > 1")
    demo.until_value(LAPTOP, ada, "name", "Ada Lovelace")
    demo.expect_equal_on_screen()
    requests.expect_none_after(len(sent), time)


def nothing_is_sent_before_the_retry_after_of_the_event_stream(demo):
    """The answer to the event stream names the time, once while the device sends, and once while it has nothing to send."""
    page, ada = demo.page, demo.add(PHONE, name="Ada")
    demo.settled()
    for is_sending in True, False:
        requests = Requests(demo)
        page.hold("*/v1/upload", "*/v1/watch")
        if is_sending:
            demo.edit(PHONE, ada, name="Ada Lovelace")
            upload = page.held()
        requests.end_stream()
        answer = page.held()
        time = requests.end_stream(lambda: requests.refuse(answer, 2))
        sent = requests.paths()
        if is_sending:
            page.release(upload)
        page.release_all()
        demo.edit(PHONE, ada, email=f"ada@{is_sending}.example.org")
        demo.toggle(PHONE, PHONE)
        demo.until_value(LAPTOP, ada, "email", f"ada@{is_sending}.example.org")
        demo.expect_equal_on_screen()
        equal(demo.value(LAPTOP, ada, "name"), "Ada Lovelace")
        requests.expect_none_after(len(sent), time)


def what_the_browser_does_not_keep_is_not_shown_as_stored(demo):
    """The browser's storage is full: fields show what is stored again, no device is added, and the page says why."""
    page = demo.page
    demo.table("list")
    groceries = demo.add(PHONE, title="Groceries")
    demo.settled()
    archived = demo.field(PHONE, groceries, "archived")
    if not page.evaluate(f"document.querySelector(`{archived}`).checkVisibility()"):
        page.click(f"{PHONE} [data-id='{groceries}'] .more")
    page.evaluate("""(() => {
        const fill = (size) => { try { localStorage.setItem("full", "x".repeat(size)); return true; } catch { return false; } };
        let size = 0;
        for (let step = 1 << 24; step >= 1; step >>= 1) if (fill(size + step)) size += step;
    })()""")

    def shown():
        return demo.value(PHONE, groceries, "title"), page.evaluate(f"document.querySelector(`{archived}`).checked"), demo.pending(PHONE)

    def said():
        return page.evaluate("document.getElementById('notice').checkVisibility() ? document.getElementById('notice').innerText : ''")

    demo.edit(PHONE, groceries, title="Milk")
    contains(said(), "Phone: the browser keeps no more")
    equal(shown(), ("Groceries", False, 0))
    page.click(archived)
    equal(shown(), ("Groceries", False, 0))
    page.click("#add-device")
    contains(said(), "Tablet: the browser keeps no more")
    equal(page.evaluate("document.querySelectorAll('.device').length"), 2)
    page.evaluate("localStorage.removeItem('full')")
    page.click("#add-device")
    demo.until("document.querySelector('[data-device=Tablet][data-state=idle]')")
    equal(said(), "")
    demo.edit(PHONE, groceries, title="Milk")
    page.click(archived)
    equal((shown()[:2], said()), (("Milk", True), ""))
    demo.until_value(LAPTOP, groceries, "title", "Milk")
    demo.until(f"document.querySelector(`{demo.field(LAPTOP, groceries, 'archived')}`).checked")


def another_tab_takes_the_devices_over(demo):
    page, ada = demo.page, demo.add(PHONE, name="Ada")
    demo.settled()
    other = Demo(page.browser, demo.url, beside=page)
    other.until("document.getElementById('elsewhere').checkVisibility()")
    equal(other.page.evaluate("document.querySelectorAll('.device').length"), 0)
    page.click(demo.field(PHONE, ada, "name"))
    page.call("Input.insertText", text=" Lovelace")
    other.page.load(lambda: other.page.click("#take-over"))
    other.ready().settled()
    equal(other.ids(PHONE), [ada])
    demo.until("document.getElementById('elsewhere').checkVisibility()")
    assert page.evaluate("weir.entries.every((e) => e.session.state === 'offline')")
    other.edit(LAPTOP, ada, email="ada@example.org")
    other.expect_equal_on_screen()
    # What is left of the first tab's events changes nothing that the second one keeps.
    page.evaluate("document.activeElement.blur()")
    page.evaluate("weir.beginAgain()")
    kept = "JSON.stringify(['Phone', 'Laptop'].map((name) => localStorage.getItem(`weir-demo:device:${name}`)))"
    equal(page.evaluate(kept), other.page.evaluate("JSON.stringify(weir.entries.map((e) => e.device.saved))"))
    equal(other.value(LAPTOP, ada, "name"), "Ada")


def a_page_that_waits_for_the_schema_is_taken_over(demo):
    """Another tab takes the devices before the page has opened them: they are not opened twice."""
    page = demo.page
    page.hold("*/v1/schema")
    page.reload()
    schema = page.held()
    other = Demo(page.browser, demo.url, beside=page)
    other.until("document.getElementById('elsewhere').checkVisibility()")
    other.page.load(lambda: other.page.click("#take-over"))
    other.ready().settled()
    demo.until("document.getElementById('elsewhere').checkVisibility()")
    page.release(schema)
    page.evaluate("""new Promise((resolve) => {
        const check = () => setTimeout(weir.schema ? resolve : check); // and then what follows the schema
        check();
    })""")
    equal(page.evaluate("[weir.entries.length, document.getElementById('main').hidden]"), [0, True])
    page.release_all()
    ada = other.add(PHONE, name="Ada")
    other.expect_equal_on_screen()
    equal(other.ids(LAPTOP), [ada])


def stages_are_lit_by_what_is_observed(demo):
    """The server's answers are held back one after the other."""
    page = demo.page

    def group(name):
        return page.evaluate(f"document.querySelector('[data-group={name}]').className").split()[1:]

    demo.settled()
    page.click("#slow-label")
    demo.toggle(LAPTOP)
    page.hold("*/v1/upload", "*/v1/batches/*")
    page.evaluate("weir.entries[0].card.act(() => weir.entries[0].device.put('person', 'p1', { name: 'Ada' }))")
    answer = page.held()
    equal((group("durable"), group("outcome")), (["active"], []))
    page.release(answer)
    demo.until("document.querySelector('[data-group=durable]').matches('.lit')")
    page.held()
    equal((group("durable"), group("outcome")), (["lit"], ["active"]))
    contains(demo.text("#receivers"), "Laptop", "offline")
    page.release_all()
    demo.until("document.querySelector('[data-group=outcome]').matches('.lit')")
    demo.settled(PHONE)
    equal(page.evaluate("document.querySelectorAll('#receivers .lit').length"), 0)
    demo.toggle(LAPTOP)
    demo.until("document.querySelector('#receivers .lit')?.innerText.includes('row ')")
    contains(demo.text("#measured tr"), "Phone 1", "person “Ada”", "applied", "Laptop")


def everything_has_a_name_and_fits(demo):
    """On a laptop and a phone, in light and dark; with the keyboard alone."""
    page = demo.page
    ada = demo.add(PHONE, name="Ada Lovelace", email="ada@example.org")
    demo.settled()
    page.call("Accessibility.enable")
    for table in "person", "task":
        demo.table(table)
        roles = {"textbox", "button", "switch", "checkbox", "radio", "combobox", "Date", "DateTime", "link"}
        nodes = [n for n in page.call("Accessibility.getFullAXTree")["nodes"] if not n["ignored"] and n["role"]["value"] in roles]
        assert len(nodes) > 20, len(nodes)
        for node in nodes:
            assert node.get("name", {}).get("value"), node
    demo.table("person")
    # The widths of phones and laptops; with both color schemes, text and page differ.
    for width, is_phone in (360, True), (768, False), (1280, False), (1440, False):
        page.resize(width, 800, mobile=is_phone)
        for scheme in "light", "dark":
            page.prefer(prefers_color_scheme=scheme)
            demo.still()
            equal(page.evaluate(f"document.scrollingElement.scrollWidth <= {width}"), True)
            least = page.evaluate(CONTRAST)
            assert least[0] >= 4.5, f"{scheme}: {least}"
    page.resize(1280, 900)
    page.evaluate(f"document.querySelector('{PHONE} .switch input').focus()")
    page.press(" ", 32, " ")
    demo.until(f"document.querySelector('{PHONE}').matches('[data-state=offline]')")
    page.press("Tab", 9)
    page.call("Input.insertText", text="Ada Byron")
    page.press("Tab", 9)
    equal(demo.pending(PHONE), 1)
    page.evaluate(f"document.querySelector('{PHONE} .add input').focus()")
    page.call("Input.insertText", text="Grace")
    page.press("Enter", 13, "\r")
    demo.until(f"document.querySelectorAll('{PHONE} .row[data-id]').length === 2")
    equal(demo.value(PHONE, ada, "name"), "Ada Byron")


def each_device_has_a_token(demo, *tokens):
    """The server checks tokens: each device asks for one."""
    equal(demo.page.evaluate("document.querySelectorAll('.token:not([hidden])').length"), 2)
    demo.page.type(f"{PHONE} .token input", "not a token")
    demo.page.click(f"{PHONE} .token button")
    demo.until(f"document.querySelector('{PHONE} .token .hint').innerText.includes('refused')")
    for device, token in zip(BOTH, tokens):
        demo.page.type(f"{device} .token input", token)
        demo.page.click(f"{device} .token button")
        demo.until(f"document.querySelector('{device} .token').hidden")
        # The fields of the schema's tables come with the first token, and move what is below them: a click would miss.
        demo.until(f"document.querySelector('{PHONE} .add input')")
    ada = demo.add(PHONE, name="Ada")
    demo.until_value(LAPTOP, ada, "name", "Ada")
    demo.expect_equal_on_screen()
    demo.page.reload()
    demo.ready().expect_equal_on_screen()
    kept = demo.page.evaluate("JSON.stringify(localStorage)")
    assert not any(token in kept for token in tokens), "a token is kept beyond the tab"
    demo.page.complaints = [c for c in demo.page.complaints if "401" not in c]


def the_tables_are_asked_for_until_they_are_known(demo, token, _):
    """The server does not answer the first request for its schema, and nothing else happens meanwhile."""
    page = demo.page
    page.hold("*/v1/schema")
    page.type(f"{PHONE} .token input", token)
    page.click(f"{PHONE} .token button")
    answer = page.held()
    demo.settled(PHONE)
    page.replace(answer, 503, {"title": "Service Unavailable"}, Retry_After=1)
    contains(demo.until("document.getElementById('notice').checkVisibility() && document.getElementById('notice').innerText"),
             "The tables are not known")
    page.release_all()
    demo.until("document.getElementById('tables').checkVisibility()")
    demo.until("!document.getElementById('notice').checkVisibility()")
    page.complaints = [c for c in page.complaints if "401" not in c and "503" not in c]


def the_fixtures_of_clients_are_played(demo):
    """docs/clients.md, Fixtures: the device of the page follows every rule."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "fixtures.js"), encoding="utf-8") as file:
        play = file.read()
    paths = sorted(glob.glob(os.path.join(here, "../../../docs/clients/fixtures/*.json")))
    assert len(paths) > 10, paths
    for path in paths:
        with open(path, encoding="utf-8") as file:
            differences = demo.page.evaluate(f"({play})({file.read()})")
        assert not differences, "\n".join([path, *differences])


def picture(demo, path):
    """The picture of the README."""
    page = demo.page
    ada, grace, alan = [demo.add(PHONE, name=name) for name in ("Ada Lovelace", "Grace Hopper", "Alan Turing")]
    demo.settled()
    demo.toggle(LAPTOP)
    demo.edit(LAPTOP, grace, email="grace@example.org")
    demo.delete(LAPTOP, alan)
    demo.edit(PHONE, ada, email="ada@example.org")
    demo.settled(PHONE)
    page.until("!document.getElementById('replay').disabled")
    page.evaluate("document.querySelector('.more-devices').hidden = document.querySelector('.below').hidden = true")
    demo.rows_on_screen(PHONE)
    page.screenshot("body", path)


def main(url, scenarios, *arguments):
    with Browser() as browser:
        for number, scenario in enumerate(scenarios.split(",")):
            demo = Demo(browser, url, "ada" if number == 0 else f"ada {number}").ready()
            try:
                globals()[scenario](demo, *arguments)
                demo.expect_quiet()
            except Exception as error:
                raise AssertionError(f"the scenario {scenario} fails") from error
            demo.page.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
