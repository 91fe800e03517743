// The rows of one table on one device: fields to edit them, and a form for a new one.

import { Cell, element, labelColumn, shownColumns, valueIn } from "./cells.js";
import { newID } from "./device.js";

const MOST_ROWS = 100; // that are drawn

/** What a row is called where it is named in a sentence. */
export function rowLabel(table, values, id) {
  const value = table && values?.[labelColumn(table)?.name];
  return typeof value === "string" && value ? value : id;
}

export class Rows {
  /**
   * @param list, empty, form the elements of the card; device what they show.
   * @param writerOf the name and color of the device with a knowledgeId.
   */
  constructor({ list, empty, form, device, act, writerOf }) {
    Object.assign(this, { list, empty, form, device, act, writerOf });
    this.views = new Map();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.add();
    });
  }

  /** Draws another table, or another version of it. */
  setTable(table, tables) {
    Object.assign(this, { table, tables });
    this.views.clear();
    this.list.replaceChildren();
    this.note?.remove();
    this.cells = table.columns.map((column) => new Cell(column, this.references));
    const shown = new Set(shownColumns(table).map((c) => c.name));
    const cells = this.form.querySelector(".cells");
    cells.replaceChildren(...this.cells.map((cell) => {
      cell.clear();
      cell.input.required = cell.isRequired && cell.input.type !== "checkbox";
      cell.element.hidden = !shown.has(cell.column.name);
      return cell.element;
    }));
    const more = moreButton(cells, table.columns.length - shown.size);
    if (more) cells.append(more);
    this.form.setAttribute("aria-label", `New row of ${table.name}`);
    this.isLive = false;
    this.render();
    this.isLive = true; // from now on a row that appears is news
  }

  /** The rows that other rows may name; the owner's own. */
  references = {
    all: (name) => this.device.rows(name).filter((r) => r.values && !r.owner)
      .map((r) => [r.id, rowLabel(this.tableOf(name), r.values, r.id)]),
    label: (name, id) => rowLabel(this.tableOf(name), this.device.valuesOf("", name, id), id),
  };

  tableOf(name) { return this.tables.find((t) => t.name === name); }

  add() {
    const values = {};
    for (const cell of this.cells) if (cell.isFilled) values[cell.column.name] = cell.read();
    if (!this.act(() => this.device.put(this.table.name, newID(), values))) return;
    for (const cell of this.cells) cell.clear();
    this.cells.find((cell) => !cell.element.hidden)?.input.focus();
  }

  render() {
    if (!this.table) return;
    const all = this.device.rows(this.table.name);
    const rows = all.slice(-MOST_ROWS);
    const keys = new Set(rows.map((row) => row.key));
    for (const [key, view] of this.views) {
      if (keys.has(key)) continue;
      view.element.remove();
      this.views.delete(key);
    }
    rows.forEach((row, index) => {
      let view = this.views.get(row.key);
      if (!view) {
        view = this.makeView(row);
        this.views.set(row.key, view);
      }
      if (this.list.children[index] !== view.element) this.list.insertBefore(view.element, this.list.children[index] ?? null);
      this.show(view, row);
    });
    this.empty.hidden = all.length > 0;
    this.note?.remove();
    if (all.length > rows.length) {
      this.note = element("p", { className: "hint", textContent: `and ${all.length - rows.length} rows before these` });
      this.list.before(this.note);
    }
  }

  makeView(row) {
    const { device, table } = this, { id, owner } = row;
    const cells = table.columns.map((column) => new Cell(column, this.references, (value) => {
      this.act(() => device.put(table.name, id, { [column.name]: value }, owner));
    }));
    const remove = element("button", { type: "button", className: "delete", textContent: "×" });
    remove.addEventListener("click", () => {
      const next = view.element.nextElementSibling ?? view.element.previousElementSibling;
      this.act(() => device.delete(table.name, id, owner));
      (next?.querySelector("input, select") ?? this.form.querySelector("input, select"))?.focus();
    });
    const box = element("div", { className: "cells" }, ...cells.map((cell) => cell.element));
    const mark = element("span", { className: "mark" });
    const writer = element("span", { className: "writer" });
    const side = element("div", { className: "side" }, mark, writer, remove);
    const view = { element: element("li", { className: "row" }, box, side), box, cells, mark, writer, remove, isShown: false };
    view.element.dataset.id = id;
    return view;
  }

  show(view, row) {
    const { table } = this;
    const isDeleted = !row.values, values = row.values ?? row.row.values;
    const label = rowLabel(table, values, row.id);
    const sent = new Set(), pending = new Set();
    for (const edit of row.edits) for (const name of Object.keys(edit.values)) (edit.sent ? sent : pending).add(name);
    const mayWrite = this.device.mayWrite(row.owner) && !isDeleted;
    const shown = new Set(shownColumns(table, values).map((c) => c.name));
    for (const cell of view.cells) {
      const { name } = cell.column, value = valueIn(values, cell.column);
      const isNews = view.isShown && cell.value !== undefined && JSON.stringify(cell.value ?? null) !== JSON.stringify(value);
      cell.show(value);
      cell.input.disabled = !mayWrite;
      if (shown.has(name)) cell.isOpen = true;
      cell.element.hidden = !cell.isOpen;
      cell.element.classList.toggle("pending", pending.has(name) || sent.has(name));
      cell.input.setAttribute("aria-label", `${name} of ${label}` + (pending.has(name) ? ", not sent yet" : sent.has(name) ? ", sent" : ""));
      if (isNews && !pending.has(name) && !sent.has(name)) flash(cell.element);
    }
    this.showMore(view);
    const [text, title] = markOf(row);
    view.mark.textContent = text;
    view.mark.title = title;
    view.element.classList.toggle("deleting", isDeleted);
    const writer = row.row && this.writerOf(row.row.writer);
    view.writer.textContent = row.owner ? `${row.owner} · ${writer?.name ?? ""}` : writer?.name ?? "";
    view.writer.title = row.row ? `last written by ${writer?.name ?? row.row.writer}, timeStamp ${row.row.ts}` : "not on the server yet";
    if (writer) view.writer.style.setProperty("--color", writer.color);
    view.remove.setAttribute("aria-label", `Delete ${label}`);
    view.remove.title = "Delete";
    view.remove.disabled = !mayWrite;
    if (!view.isShown && row.row && !row.edits.length && this.isLive) flash(view.element);
    view.isShown = true;
  }

  showMore(view) {
    const hidden = view.cells.filter((cell) => cell.element.hidden).length;
    if (view.hiddenCount === hidden) return;
    view.hiddenCount = hidden;
    view.more?.remove();
    view.more = moreButton(view.box, hidden, () => { for (const cell of view.cells) cell.isOpen = true; });
    if (view.more) view.box.append(view.more);
  }
}

/** What is said of the edits of a row. */
function markOf({ edits, row, values }) {
  if (!edits.length) return ["", ""];
  const isSent = edits.every((edit) => edit.sent);
  const what = !values ? "deletion" : row ? "edit" : "new";
  return isSent ? [`${what} sent`, "sent, without an outcome yet"] : [`${what} waiting`, "not sent yet"];
}

function moreButton(box, count, onOpen) {
  if (count <= 0) return null;
  const button = element("button", { type: "button", className: "more quiet", textContent: `+${count}` });
  button.setAttribute("aria-label", `Show ${count} more columns`);
  button.addEventListener("click", () => {
    onOpen?.();
    const cells = [...box.querySelectorAll(".cell[hidden]")];
    for (const cell of cells) cell.hidden = false;
    button.remove();
    cells[0]?.querySelector("input, select")?.focus();
  });
  return button;
}

/** Marks what another device has just changed. */
function flash(target) {
  target.classList.remove("news");
  void target.offsetWidth; // restarts the animation
  target.classList.add("news");
}
