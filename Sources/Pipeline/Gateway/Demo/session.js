// When a device sends and pulls, and what happens after each answer (docs/clients.md, The loop).

import { SyncError } from "./server.js";

const LONGEST_PAUSE = 30_000;
const MOST_REPEATS = 3; // of a batch that the server does not know after it had accepted it

export class Session {
  /**
   * @param device what is kept; server sends its requests; journeys records what is observed.
   * @param onChange called when the state that is shown has changed.
   */
  constructor(device, server, journeys, { isOnline, onChange }) {
    Object.assign(this, { device, server, journeys, isOnline, onChange });
    this.state = "offline"; // or idle, syncing, retrying, stopped, unauthenticated
    this.error = null;
    this.onlineSince = null;
    this.notBefore = 0; // when the server lets the device send again, after an answer with Retry-After
    this.moved = Promise.withResolvers?.() ?? resolvers();
    if (isOnline) this.start();
  }

  // Online and offline

  setOnline(isOnline) {
    if (isOnline === this.isOnline) return;
    this.isOnline = isOnline;
    if (isOnline) this.start();
    else this.stop();
  }

  start() {
    this.abort = new AbortController();
    this.onlineSince = performance.now();
    this.knownCaller = null;
    this.attempt = 0;
    this.show("idle");
    this.watch(this.abort.signal);
    this.wake();
  }

  /** Sends nothing from now on; what was sent without an answer is repeated later. */
  stop() {
    this.abort.abort();
    clearTimeout(this.timer);
    this.onlineSince = null;
    this.show("offline");
  }

  /** Tries again, with what names the caller now. */
  restart() {
    if (!this.isOnline) return;
    this.stop();
    this.start();
  }

  show(state, error = null) {
    Object.assign(this, { state, error });
    this.onChange();
  }

  // The loop

  /** Something is to be sent or pulled: at once, or when the server lets the device send again. */
  wake() {
    this.isDue = true;
    clearTimeout(this.timer);
    if (!this.isOnline || this.isRunning || this.state === "unauthenticated") return;
    const pause = this.notBefore - performance.now();
    if (pause <= 0) {
      this.run(this.abort.signal);
    } else {
      this.timer = setTimeout(() => this.wake(), pause);
      this.show("retrying", this.error);
    }
  }

  async run(signal) {
    this.isRunning = true;
    try {
      while (this.isDue && !signal.aborted) {
        this.isDue = false;
        this.show("syncing");
        await this.sync(signal);
        this.attempt = 0;
      }
      if (!signal.aborted) this.show("idle");
    } catch (error) {
      if (!signal.aborted) this.failed(error);
    } finally {
      this.isRunning = false;
      if (this.isOnline && this.abort.signal !== signal) this.wake(); // was offline for a moment
    }
  }

  failed(error) {
    const { status } = error;
    if (status === 401) return this.show("unauthenticated", error);
    if (!(error instanceof SyncError) || error.isPermanent) return this.show("stopped", error);
    this.holdBack(error);
    this.timer = setTimeout(() => this.wake(), pauseAfter(this.attempt++));
    this.show("retrying", error);
  }

  /** Has nothing sent before the time that an answer names, whichever request it was to. */
  holdBack(error) {
    this.notBefore = Math.max(this.notBefore, performance.now() + (error.retryAfter ?? 0) * 1000);
  }

  /** Waits until the server lets the device send again. */
  async turn() {
    for (let pause; (pause = this.notBefore - performance.now()) > 0;) await new Promise((resolve) => setTimeout(resolve, pause));
  }

  /** Sends all edits, and pulls until nothing is left. */
  async sync(signal) {
    const { device } = this;
    let caller = this.caller(), isDrained = false, isRenewed = false;
    for (;;) {
      // No edits are sent before an answer has shown that the caller is the device's account, nor while outcomes are unknown.
      const batch = caller === this.knownCaller && !device.state.mustDrain ? device.freeze() : null;
      if (!batch && isDrained) return;
      let answer;
      try {
        answer = await this.exchange(batch, signal);
        isDrained = device.apply(answer, batch);
      } catch (error) {
        // Members of the answer have other content than the contract says.
        if (error instanceof TypeError) throw new SyncError(`the answer is not of the contract: ${error.message}`, { status: 200 });
        isDrained = false;
        const rejected = caller;
        if (error.status === 401 && !isRenewed) [caller, isRenewed] = [this.caller(), true];
        if (caller !== rejected) continue;
        if (!batch || error.status !== 413) throw error;
        device.split();
        continue;
      }
      this.journeys.pulled(device, answer.changes, performance.now(), this.onlineSince);
      this.knownCaller = caller;
      this.onChange();
    }
  }

  /** What names the caller now. */
  caller() { return JSON.stringify(this.server.headers()); }

  async exchange(batch, signal) {
    const { device, server } = this;
    const outcome = batch && await this.submit(batch, signal);
    await this.turn();
    // With the outcome of a batch, from a stream that has its results.
    const include = outcome?.results && { include: [batch.number] };
    const answer = await server.pull({ ...device.pullRequest(), ...include }, signal);
    signal.throwIfAborted();
    if (device.state.syncId !== null && device.state.syncId !== answer.syncId) {
      throw new SyncError(`this device is of ${device.state.syncId}, the token of ${answer.syncId}`, { isPermanent: true });
    }
    return outcome ? { ...answer, batch: outcome } : answer;
  }

  /** Sends a batch and waits for its outcome. */
  async submit(batch, signal) {
    const { device, server, journeys } = this;
    for (let repeats = 0; ; repeats++) {
      await this.turn();
      signal.throwIfAborted();
      const journey = journeys.sent(device, batch, performance.now());
      try {
        let outcome = await server.upload(batch, signal);
        if (!outcome) {
          journeys.durable(journey, performance.now());
          outcome = await this.outcome(batch, signal);
        }
        journeys.outcome(journey, outcome, performance.now());
        return outcome;
      } catch (error) {
        if (error.name !== "AbortError") journeys.failed(journey, error);
        if (error.status !== 404 || repeats === MOST_REPEATS) throw error;
      }
    }
  }

  /** Asks for the outcome of a batch whenever the stream has moved, and after growing pauses, since a refused batch moves no stream. */
  async outcome(batch, signal) {
    for (let pause = 10; ; pause = Math.min(2 * pause, 1000)) {
      await this.turn();
      const moved = this.moved.promise;
      const outcome = await this.server.outcome(batch, this.device.state.knowledgeId, signal);
      if (outcome) return outcome;
      await Promise.race([moved, new Promise((resolve) => setTimeout(resolve, pause))]);
      signal.throwIfAborted();
    }
  }

  // The event stream

  async watch(signal) {
    for (let attempt = 0; ; attempt++) {
      await this.turn();
      if (signal.aborted) return;
      const silence = new AbortController();
      const limit = () => setTimeout(() => silence.abort(), 3000 * (this.keepAlive ?? 15));
      let timer = limit();
      try {
        await this.server.watch(AbortSignal.any([signal, silence.signal]), (event) => {
          attempt = 0;
          this.head(event);
        }, () => {
          clearTimeout(timer);
          timer = limit();
        });
      } catch (error) {
        if (!signal.aborted && error.status === 401) return this.show("unauthenticated", error);
        this.holdBack(error);
      } finally {
        clearTimeout(timer);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseAfter(attempt)));
    }
  }

  head({ syncId, head }) {
    if (syncId === this.device.state.syncId) this.journeys.event(this.device, head, performance.now());
    this.moved.resolve();
    this.moved = Promise.withResolvers?.() ?? resolvers();
    if (head > this.device.floor(syncId) && this.state !== "stopped") this.wake();
  }
}

/** Milliseconds before the next attempt: longer each time, with jitter. */
function pauseAfter(attempt) {
  return Math.min(LONGEST_PAUSE, 500 * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2);
}

function resolvers() {
  const made = {};
  made.promise = new Promise((resolve) => { made.resolve = resolve; });
  return made;
}
