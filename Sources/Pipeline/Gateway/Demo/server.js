// Requests of one device, by the client contract (docs/openapi.json).

const LONGEST_RETRY_AFTER = 1_000_000; // seconds; a timer that is to wait for more than 24 days fires at once
const LONGEST_REQUEST = 70_000; // milliseconds
const ANSWER = ["syncId", "epoch", "schemaVersion", "owners", "changes", "knowledge", "hasMore", "revoked", "resync"];

/** Why an exchange failed. Nothing is lost: the same is sent again. */
export class SyncError extends Error {
  /**
   * @param status null without an answer.
   * @param retryAfter seconds.
   * @param isPermanent whether the user or an administrator has to act before it can succeed.
   */
  constructor(message, { status = null, code = null, cause = null, retryAfter = null, challenge = null, isPermanent } = {}) {
    super(message);
    isPermanent ??= status >= 300 && status < 500 && ![404, 408, 429].includes(status);
    Object.assign(this, { status, code, reason: cause, retryAfter, challenge, isPermanent });
  }
}

export class Server {
  /**
   * @param headers those that name the caller, at the time of the call.
   * @param fetch for tests.
   */
  constructor(headers, fetch = globalThis.fetch.bind(globalThis)) {
    this.headers = headers;
    this.fetch = fetch;
  }

  /** Responds with status and body of an answer of the contract; throws SyncError for everything else. */
  async request(method, path, body, signal) {
    // Over a connection that is dead without being closed, an answer would be awaited for ever.
    const limit = AbortSignal.timeout(LONGEST_REQUEST);
    const response = await this.send(method, path, body, signal ? AbortSignal.any([signal, limit]) : limit);
    let answer = null;
    try {
      answer = JSON.parse(await response.text());
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (!(error instanceof SyntaxError)) throw noAnswer(error);
    }
    const isObject = typeof answer === "object" && answer !== null && !Array.isArray(answer);
    if (!isObject || (response.status !== 200 && response.status !== 202)) throw problem(response, isObject ? answer : {});
    return { status: response.status, answer };
  }

  async send(method, path, body, signal) {
    try {
      return await this.fetch(new URL(path, document.baseURI), {
        method, body, signal, cache: "no-store", redirect: "error", credentials: "omit",
        headers: { ...this.headers(), ...(body && { "Content-Type": "application/json" }) },
      });
    } catch (error) {
      throw error.name === "AbortError" ? error : noAnswer(error);
    }
  }

  async schema(signal) {
    const { answer } = await this.request("GET", "v1/schema", undefined, signal);
    if (!Array.isArray(answer.tables)) throw new SyncError("the answer is not of the contract", { status: 200 });
    return answer;
  }

  /** Sends a frozen batch. Returns null once it is durable, or the outcome of one that is refused at once. */
  async upload(batch, signal) {
    const { status, answer } = await this.request("POST", "v1/upload", batch.body, signal);
    if (status === 202) return null;
    return outcomeOf(answer, batch);
  }

  /** The outcome of a batch with all of its rows; null while it is not known; throws SyncError with 404 for an unknown batch. */
  async outcome(batch, knowledgeId, signal) {
    const path = `v1/batches/${batch.number}?${new URLSearchParams({ knowledgeId })}`;
    const { status, answer } = await this.request("GET", path, undefined, signal);
    if (status === 202) return null;
    const outcome = outcomeOf(answer, batch);
    while (outcome.rowsFrom !== undefined) { // the server's rows of conflicts that did not fit into the answer
      const page = await this.request("GET", `${path}&rowsFrom=${outcome.rowsFrom}`, undefined, signal);
      if (page.status !== 200) throw new SyncError("the rows of conflicts are not known yet", { status: page.status });
      for (const shown of page.answer.batch.rows) outcome.results[shown.result].row = shown.row;
      outcome.rowsFrom = page.answer.batch.rowsFrom;
    }
    return outcome;
  }

  async pull(request, signal) {
    const { answer } = await this.request("POST", "v1/pull", JSON.stringify(request), signal);
    if (ANSWER.some((name) => !(name in answer))) throw new SyncError("the answer is not of the contract", { status: 200 });
    return answer;
  }

  /** Reads the event stream until it ends. Calls `onHead` for each head, and `onBytes` whenever something arrives. */
  async watch(signal, onHead, onBytes) {
    const response = await this.send("GET", "v1/watch", undefined, signal);
    if (response.status !== 200) throw problem(response, await response.json().catch(() => ({})));
    let text = "";
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      text += decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const fields = event.split("\n");
        const data = fields.find((line) => line.startsWith("data:"));
        if (fields.includes("event: head") && data) onHead(JSON.parse(data.slice(5)));
      }
    }
  }
}

function outcomeOf(answer, batch) {
  const outcome = answer.batch;
  if (outcome?.batch !== batch.number || !(outcome.results || outcome.refused)) {
    throw new SyncError("the answer is not of the contract", { status: 200 });
  }
  return outcome;
}

const noAnswer = (error) => new SyncError(`no complete answer: ${error.message}`);

function problem(response, answer) {
  const seconds = response.headers.get("Retry-After");
  return new SyncError(answer.detail ?? answer.title ?? `the answer is not of the contract (status ${response.status})`, {
    status: response.status, code: answer.code ?? null, cause: answer.cause ?? null,
    retryAfter: /^\d+$/.test(seconds ?? "") ? Math.min(Number(seconds), LONGEST_RETRY_AFTER) : null,
    challenge: response.headers.get("WWW-Authenticate"),
  });
}
