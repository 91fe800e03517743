// Plays a fixture of docs/clients/fixtures against the device of the demo page, in the page. The fixtures have one exchange, /v1/sync, where
// the page has three: upload, outcome and pull. The script below answers these with the parts of that one, and compares their requests with its
// parts.
async (fixture) => {
  const load = (name) => import(new URL(`demo/${name}.js`, document.baseURI));
  const [{ Device, same }, { Server, SyncError }, { Session }, { Journeys }] = await Promise.all(
    ["device", "server", "session", "journeys"].map(load));

  const PULL = ["knowledge", "limit", "compact", "cutFrom"];
  const ids = fixture.devices.values(), differences = [];
  let saved = null, headers = { "X-Sync-Id": "ada" }, waiting = [], held = null, where = "", device, session;

  const compare = (expected, found, what) => {
    if (!same(expected, found)) differences.push(`${where}: ${what}\n  expected ${JSON.stringify(expected)}\n  found    ${JSON.stringify(found)}`);
  };
  const part = (body, isPicked) => Object.fromEntries(Object.entries(body).filter(([name]) => isPicked(name)));
  const respond = (exchange, answer = exchange.answer) => {
    headers = exchange.renewed ?? headers;
    if (exchange.lost === "answer") throw new TypeError("the answer was lost");
    return new Response(exchange.text ?? JSON.stringify(answer), { status: exchange.status ?? 200, headers: exchange.headers });
  };
  const next = (request) => {
    const exchange = waiting.shift() ?? {};
    compare(exchange.request, request, "request");
    if (exchange.lost === "request") throw new TypeError("the request was lost");
    return exchange;
  };

  const fetch = async (url, { method, body: text }) => {
    const path = url.pathname + url.search, body = text ? JSON.parse(text) : undefined;
    if (path === "/v1/upload") {
      const exchange = waiting.shift() ?? {}, request = exchange.request ?? {};
      compare("/v1/sync", request.path, "path of a batch");
      compare(part(request.body ?? {}, (name) => !PULL.includes(name)), body, "batch");
      if (exchange.lost === "request") throw new TypeError("the request was lost");
      const isKnown = exchange.answer?.batch?.results || exchange.answer?.batch?.refused;
      if (!isKnown || (exchange.status ?? 200) !== 200) return respond(exchange);
      held = { exchange, request };
      const isRefusedAtOnce = exchange.answer.batch.refused?.code === "history_changed";
      return new Response(JSON.stringify(isRefusedAtOnce ? { batch: exchange.answer.batch } : { batch: body.batch }),
        { status: isRefusedAtOnce ? 200 : 202 });
    }
    if (path.startsWith("/v1/batches/") && !path.includes("rowsFrom")) {
      const { batch, knowledgeId } = held.request.body;
      compare(`/v1/batches/${batch}?knowledgeId=${knowledgeId}`, path, "path of the outcome");
      return new Response(JSON.stringify({ batch: held.exchange.answer.batch }));
    }
    if (path === "/v1/pull" && held) {
      const { exchange, request } = held;
      held = null;
      const isPart = (name) => PULL.includes(name) || ["knowledgeId", "epoch", "schemaVersion"].includes(name);
      const include = exchange.answer.batch.results ? { include: [request.body.batch] } : {};
      compare({ ...part(request.body, isPart), ...include }, body, "pull after a batch");
      return respond(exchange, part(exchange.answer, (name) => name !== "batch"));
    }
    return respond(next({ method, path, ...(body && { body }) }));
  };

  const open = () => {
    const store = { load: () => saved, save: (text) => { saved = text; } };
    device = new Device(store, () => ids.next().value);
    device.limit = fixture.limit ?? device.limit;
    session = new Session(device, new Server(() => headers, fetch), new Journeys(() => {}), { isOnline: false, onChange: () => {} });
  };
  const sync = async (step) => {
    waiting = [...step.sync];
    held = null;
    let failure;
    try {
      await session.sync(new AbortController().signal);
    } catch (error) {
      if (!(error instanceof SyncError)) throw error;
      failure = { status: error.status, code: error.code, retryAfter: error.retryAfter };
    }
    compare(step.error, failure, "error");
    compare([], waiting, "requests that were not sent");
  };
  const withoutNulls = (values) => part(values, (name) => values[name] !== null);
  const state = {
    rows: (expected) => Object.fromEntries(Object.keys(expected).map((name) => {
      const [table, owner = ""] = name.split("/");
      const rows = device.rows(table).filter((row) => row.owner === owner && row.values);
      return [name, Object.fromEntries(rows.map((row) => [row.id, withoutNulls(row.values)]))];
    })),
    pending: () => device.pending(), aside: () => device.aside(), knowledge: () => device.knowledge,
  };

  open();
  for (const [number, step] of fixture.steps.entries()) {
    where = `step ${number}`;
    device.now = () => step.at;
    for (const command of ["put", "delete", "resend", "discard"]) {
      if (command in step) device[command](...[step[command]].flat());
    }
    if (step.headers) headers = step.headers;
    if (step.restart) open();
    if (step.sync) await sync(step);
    for (const [name, expected] of Object.entries(step.expect ?? {})) compare(expected, state[name](expected), name);
  }
  return differences;
}
