// The rows of an answer in the order and by the filters that were chosen: here where the record has them all, else by
// the server, which keeps them.

import { get } from "./api.js";
import { shown } from "./dom.js";

const PAGE = 1000;
const order = new Intl.Collator("en", { numeric: true });
const COMPARES = { "=": (by) => by === 0, "!=": (by) => by !== 0, ">": (by) => by > 0, "<": (by) => by < 0, ">=": (by) => by >= 0, "<=": (by) => by <= 0 };

// What is written into a filter, as conditions: "ann" (held), ">5", "1..5", "=" (missing).
function conditions(written) {
  const text = written.trim();
  const range = text.match(/^(.+?)\.\.(.+)$/);
  if (range) return [[">=", range[1]], ["<=", range[2]]];
  const [, operator = "~", value] = text.match(/^([!<>]=|[=<>])?\s*([^]*)$/);
  return value === "" && !/^!?=$/.test(operator) ? [] : [[operator, value]];
}

// The order and the filters as the server takes them.
export function selection(column, down, filters) {
  const asked = new URLSearchParams(column && { sort: (down ? "-" : "") + column.name });
  for (const [each, written] of filters) {
    for (const condition of conditions(written)) asked.append("filter", each.name + condition.join(""));
  }
  return asked;
}

// Each of both has `total` rows that pass; `select` gives `at(place)` another meaning, and `load` waits for a place.
export const rowsOf = (record) => (record.rows.length < reachable(record) ? new Kept(record) : new Here(record));

// How many rows of an answer there are here or at the server.
export const reachable = (record) => (record.id ? record.rows_kept ?? record.rows_total : record.rows.length);

class Here {
  constructor(record) {
    this.all = this.found = record.rows.map((row, number) => ({ row, number }));
  }

  get total() {
    return this.found.length;
  }

  at(place) {
    return this.found[place];
  }

  select(column, down, filters) {
    const tests = filters.flatMap(([each, written]) => conditions(written).map((one) => (entry) => passes(each, entry.row[each.at], one)));
    this.found = this.all.filter((entry) => tests.every((test) => test(entry)));
    if (!column) return;
    this.found.sort(({ row: a }, { row: b }) => {
      const [left, right] = [a[column.at], b[column.at]];
      if (left === null || right === null) return (left === null) - (right === null); // nulls last, either way
      return down ? -compare(column, left, right) : compare(column, left, right);
    });
  }
}

const compare = (column, left, right) => (column.number ? Number(left) - Number(right) : order.compare(shown(left), shown(right)));

function passes(column, value, [operator, wanted]) {
  if (operator === "~") return shown(value).toLowerCase().includes(wanted.toLowerCase());
  if (wanted === "") return (value === null) === (operator === "=");
  return value !== null && COMPARES[operator](compare(column, value, wanted));
}

class Kept {
  constructor(record) {
    this.id = record.id;
    this.total = reachable(record);
    this.asked = new URLSearchParams();
    this.known = new Map(record.rows.map((row, number) => [number, { row, number }]));
  }

  at(place) {
    return this.known.get(place);
  }

  select(column, down, filters) {
    this.asked = selection(column, down, filters);
    this.known = new Map();
    return this.load(0);
  }

  async load(place) {
    let start = place;
    while (start > 0 && place - start < PAGE / 2 && !this.known.has(start - 1)) start -= 1;
    await this.#read(start);
    if (!this.known.has(place) && place < this.total) await this.#read(place); // of long rows a page has fewer
  }

  async #read(start) {
    const { asked, known } = this;
    const page = await get(`answers/${this.id}/page?${asked}&start=${start}&limit=${PAGE}`);
    if (known !== this.known) return;
    this.total = page.rows_total;
    page.rows.forEach((row, by) => known.set(start + by, { row, number: page.places[by] }));
  }
}
