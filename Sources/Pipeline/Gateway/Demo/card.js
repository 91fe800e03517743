// What is shown of one device: its switch and state, its rows, what was not stored, and what it keeps.

import { element, textOf, valueIn } from "./cells.js";
import { Rows, rowLabel } from "./rows.js";

const SOON = 250; // milliseconds

const template = document.getElementById("device-template");

export class Card {
  /**
   * @param entry the device with its name, color, session and token store.
   * @param app what the card asks for: tokens, removal, and who has written a row.
   */
  constructor(entry, app) {
    Object.assign(this, { entry, app });
    this.element = template.content.firstElementChild.cloneNode(true);
    this.find = (selector) => this.element.querySelector(selector);
    this.element.style.setProperty("--color", entry.color);
    this.element.dataset.device = entry.name;
    this.find("h2").textContent = entry.name;
    this.element.setAttribute("aria-label", entry.name);
    this.rows = new Rows({
      list: this.find(".rows"), empty: this.find(".empty"), form: this.find(".add"), device: entry.device,
      act: (change) => this.act(change), writerOf: app.writerOf,
    });
    this.state = this.find(".state");
    this.online = this.find(".switch input");
    this.online.setAttribute("aria-label", `${entry.name} is online`);
    this.online.addEventListener("change", () => app.setOnline(entry, this.online.checked));
    this.token = this.find(".token");
    this.token.addEventListener("submit", (event) => {
      event.preventDefault();
      const input = this.token.querySelector("input");
      app.setToken(entry, input.value.trim());
      input.value = "";
    });
    this.removal = this.find(".remove");
    this.removal.setAttribute("aria-label", `Remove ${entry.name}`);
    this.removal.addEventListener("click", () => app.remove(entry));
  }

  /** Makes an edit, has it sent, and shows what is stored then. Returns whether the edit is. */
  act(change) {
    this.app.notify("");
    const isStored = this.app.store(this.entry.name, change);
    if (isStored) this.entry.session.wake();
    this.render();
    return isStored;
  }

  setSchema(schema, table) {
    this.schema = schema;
    this.rows.setTable(table, schema.tables);
  }

  render() {
    const { device, session } = this.entry;
    const pending = device.state.edits.length;
    this.online.checked = this.entry.isOnline;
    this.element.dataset.state = session.state;
    this.element.dataset.pending = pending;
    const needsToken = this.app.usesTokens && (!this.entry.token || session.state === "unauthenticated");
    const isBrief = session.state === "syncing" && pending === 0;
    this.showState(stateText(needsToken ? "unauthenticated" : session.state, session.error, pending), isBrief);
    this.token.hidden = !needsToken;
    this.find(".token .hint").textContent = session.error?.reason
      ? `The token was refused: ${session.error.reason}.` : "It stays in this tab. For a server with a secret: weir token create OWNER --auth.secret-file FILE";
    this.find(".add").hidden = !this.schema;
    this.rows.render();
    if (!this.schema) this.rows.empty.hidden = true;
    this.showAside();
    this.showKept();
    this.removal.hidden = !this.app.mayRemove;
  }

  /** Says what the device does; a pull that ends in a moment is not worth a word. */
  showState(text, isBrief) {
    clearTimeout(this.stateTimer);
    if (isBrief) this.stateTimer = setTimeout(() => this.showState(text, false), SOON);
    else if (this.state.textContent !== text) this.state.textContent = text;
  }

  showAside() {
    const aside = this.entry.device.aside();
    const key = JSON.stringify(aside);
    if (key === this.shownAside) return;
    this.shownAside = key;
    this.find(".asides").hidden = !aside.length;
    this.find(".asides ul").replaceChildren(...aside.map((edit) => this.asideItem(edit)));
  }

  asideItem(edit) {
    const table = this.schema?.tables.find((t) => t.name === edit.table);
    const column = (name) => table?.columns.find((c) => c.name === name) ?? { name, type: "text" };
    const label = rowLabel(table, { ...this.entry.device.valuesOf(this.entry.device.owner(edit.syncId ?? ""), edit.table, edit.id), ...edit.values }, edit.id);
    const item = element("li", {}, element("p", {}, element("code", { textContent: edit.code }),
      ` ${edit.deleted ? "deletion of" : ""} ${edit.table} “${label}”`));
    for (const [name, value] of Object.entries(edit.values ?? {})) {
      const { type } = column(name);
      const theirs = edit.row && !edit.row.deleted ? textOf(valueIn(edit.row.values, column(name)), type) || "nothing" : null;
      item.append(element("p", { className: "values" }, `${name}: `, element("del", { textContent: textOf(value, type) || "nothing" }),
        theirs === null ? "" : " the server has ", theirs === null ? "" : element("ins", { textContent: theirs })));
    }
    if (edit.message) item.append(element("p", { className: "hint", textContent: edit.message }));
    const button = (text, what, change) => {
      const made = element("button", { type: "button", className: "quiet", textContent: text });
      made.setAttribute("aria-label", `${text}: ${what} of ${label}`);
      made.addEventListener("click", () => this.act(change));
      return made;
    };
    const { device } = this.entry;
    const what = edit.deleted ? "the deletion" : "the edit";
    item.append(element("div", { className: "actions" },
      button("Send again", what, () => device.resend(edit.number)), button("Discard", what, () => device.discard(edit.number))));
    return item;
  }

  showKept() {
    const { state } = this.entry.device;
    const facts = [
      ["knowledgeId", state.knowledgeId],
      ["account", state.syncId ?? "not known yet"],
      ["knowledge vector", state.vector.map((k) => `${k.syncId} / ${k.knowledgeId}: ${k.lastTimeStamp}`).join(", ") || "empty"],
      ["last batch number", state.lastBatch],
      ["batch without an outcome", state.batch ? `${state.batch.number}, ${state.batch.body.length} bytes` : "none"],
      ["pending edits", state.edits.length],
      ["rows and tombstones", Object.keys(state.rows).length],
      ["epoch", state.epoch ?? "not known yet"],
    ];
    this.find("dl").replaceChildren(...facts.flatMap(([name, value]) => [
      element("dt", { textContent: name }), element("dd", { textContent: String(value) }),
    ]));
  }
}

const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function stateText(state, error, pending) {
  const waiting = pending ? `, ${count(pending, "edit")} ${pending === 1 ? "waits" : "wait"}` : "";
  switch (state) {
    case "offline": return `offline${waiting}`;
    case "idle": return waiting ? `online${waiting}` : "up to date";
    case "syncing": return pending ? `sends ${count(pending, "edit")}` : "pulls";
    case "retrying": return `no answer, tries again${waiting}`;
    case "unauthenticated": return `needs a token${waiting}`;
    default: return `stopped: ${error?.message}${waiting}`;
  }
}
