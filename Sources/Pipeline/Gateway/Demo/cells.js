// A column's value as a form field, by the column's type. What a field cannot hold is sent as it was typed: the server judges it.

const FEW = 3; // columns shown besides those that are required or have a value

/** Which columns of a row are shown at first. */
export function shownColumns(table, values) {
  const isNeeded = (c) => (!c.nullable && c.default === undefined) || (values && values[c.name] !== undefined && values[c.name] !== null);
  return table.columns.filter((column, index) => index < FEW || isNeeded(column));
}

/** A column's value in a row; its default in one that was last written before its table had the column, or that the server does not have yet. */
export const valueIn = (values, column) => values[column.name] === undefined ? column.default ?? null : values[column.name];

/** The column that names a row to people. */
export function labelColumn(table) {
  const texts = table.columns.filter((c) => c.type === "text" && !c.references);
  return texts.find((c) => !c.nullable) ?? texts[0] ?? table.columns[0];
}

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export class Cell {
  /**
   * @param rows what a column with `references` may name: `rows.all(table)` has id and label of each, `rows.label(table, id)` the label of one.
   * @param onChange called with the value when the user has changed it.
   */
  constructor(column, rows, onChange) {
    this.column = column;
    this.rows = rows;
    this.input = this.makeInput();
    this.element = element("label", { className: `cell type-${column.type.replace(/\W.*/, "")}` },
      element("span", { textContent: column.name }), this.input);
    this.element.dataset.column = column.name;
    this.value = undefined;
    this.input.addEventListener("change", () => {
      this.markBlank();
      this.value = undefined; // what is stored is shown next, whether it is the user's value or not
      onChange?.(this.read());
    });
    this.input.addEventListener("focus", () => this.fillChoices());
  }

  makeInput() {
    const { type, references, length, nullable } = this.column;
    if (references || (type === "boolean" && nullable)) {
      const select = element("select");
      if (!references) for (const text of ["", "true", "false"]) select.append(element("option", { value: text, textContent: text || "–" }));
      return select;
    }
    if (type === "boolean") return element("input", { type: "checkbox" });
    const input = element("input", { type: "text", autocomplete: "off", spellcheck: false, placeholder: placeholderOf(type) });
    if (type === "date") input.type = "date";
    if (type === "timestamp") Object.assign(input, { type: "datetime-local", step: "1" });
    if (/^(integer|real|decimal)/.test(type)) input.inputMode = "decimal";
    if (type === "text" && length) input.maxLength = length;
    return input;
  }

  /** The rows that there are when the user is about to choose one. */
  fillChoices() {
    const { references } = this.column;
    if (references) this.offer(this.input.value, this.rows.all(references));
  }

  /** Offers rows, and the current one even if it is not among them. */
  offer(current, rows) {
    const choices = new Map([["", "–"], ...rows]);
    if (current && !choices.has(current)) choices.set(current, this.rows.label(this.column.references, current));
    this.input.replaceChildren(...Array.from(choices, ([value, textContent]) => element("option", { value, textContent })));
    this.input.value = current;
  }

  /** Shows a value, unless the user is changing it. */
  show(value) {
    const isShown = this.value !== undefined && this.value === value, hasFocus = document.activeElement === this.input;
    // The label of another row may have changed, but choices that are open stay as they are.
    if (hasFocus ? isShown || this.isChanged : isShown && !this.column.references) return;
    this.value = value;
    if (this.input.type === "checkbox") {
      this.input.checked = value === true;
      return;
    }
    const text = textOf(value, this.column.type);
    if (this.column.references) this.offer(text, []);
    this.input.value = text;
    this.shown = text;
    this.markBlank();
  }

  /** A field without a value shows only how a date is written. */
  markBlank() { this.input.classList.toggle("blank", this.input.value === ""); }

  get isChanged() { return this.input.type !== "checkbox" && this.input.value !== (this.shown ?? ""); }

  /** The value as it is sent. */
  read() {
    const { input, column } = this;
    if (input.type === "checkbox") return input.checked;
    this.shown = input.value;
    return valueOf(input.value, column);
  }

  /** As in a form that was not filled in. */
  clear() {
    if (this.input.type === "checkbox") this.input.checked = this.column.default === true;
    else if (this.column.references) this.offer("", []);
    else this.input.value = "";
    this.value = undefined;
    this.shown = "";
    this.markBlank();
  }

  /** Whether it was filled in, in a form for a new row. */
  get isFilled() {
    if (this.input.type !== "checkbox") return this.input.value !== "";
    return this.isRequired || this.input.checked !== (this.column.default === true);
  }

  get isRequired() { return !this.column.nullable && this.column.default === undefined; }
}

function placeholderOf(type) {
  if (type.startsWith("decimal")) return "0.00";
  return { json: "[\"…\"]", uuid: "uuid", bytes: "base64" }[type] ?? "";
}

/** A value as text: what is typed for it, and what is shown of it. */
export function textOf(value, type) {
  if (value === null || value === undefined) return "";
  if (type === "json" || typeof value === "object") return JSON.stringify(value);
  if (type === "timestamp") {
    const date = new Date(value);
    if (isNaN(date)) return "";
    return new Date(date - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  }
  return String(value);
}

function valueOf(text, { type }) {
  if (text === "") return null;
  if (type === "boolean") return text === "true";
  if (type === "integer" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "real" && Number.isFinite(Number(text))) return Number(text);
  if (type === "timestamp") {
    const date = new Date(text);
    return isNaN(date) ? text : date.toISOString();
  }
  if (type === "json") {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}
