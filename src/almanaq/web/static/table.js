// The rows of an answer: sorted, filtered and copied here; what a column's menu asks is the next query.

import { stream } from "./api.js";
import { button, el, plural, popup, say, shown, visible } from "./dom.js";
import { askAbove, problem } from "./editor.js";
import { quoted } from "./quotes.js";
import { judge } from "./verdicts.js";

const NUMBER = /^(smallint|integer|bigint|numeric|decimal|real|double)/;
const NAMES_A_THING = /(^|[_ ])(id|no|nr|key|code|zip|postcode|year|phone)$/i;
const PROSE = 60; // characters from which on a cell is wrapped
const BATCH = 200; // rows drawn at once
const MOST_VALUES = 50;
const BEFORE_QUOTE = 60;

// `again` is given the record of a query that a column's menu asked, and what it is.
export function table(record, again) {
  const columns = record.columns.map((column, at) => readColumn(column, at, record.rows.map((row) => row[at])));
  const first = [];
  record.evidence.reduce((count, own, number) => ((first[number] = count), count + own.length), 0);
  const entries = record.rows.map((row, number) => ({ row, number, text: row.map(shown).join(" ").toLowerCase() }));
  const quotes = record.evidence.flat();
  const judged = Number(Boolean(record.id && record.keys)); // a further column for the verdicts on rows
  const state = { at: null, down: false, filter: "", hidden: new Set() };
  const grid = el("table", {});
  const scroll = el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Rows" }, grid);
  const told = el("div", {});
  let rows = entries;
  const kept = () => columns.filter((column) => !state.hidden.has(column));

  const ask = async (suql, words) => {
    told.replaceChildren(el("p", { class: "working" }, "Running …"));
    try {
      const options = askAbove === null ? {} : { max_calls: askAbove };
      again(await stream("sql", { suql, max_rows: 1000, options }, undefined, () => {}), words);
      told.replaceChildren();
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  };
  const sort = (column, down) => {
    if (record.truncated && record.suql) {
      return ask(`${inner(record)} ORDER BY ${name(column)}${down ? " DESC" : ""}`, `Sorted by ${column.name}`);
    }
    [state.at, state.down] = [column, down];
    draw();
    say(`Sorted by ${column.name}, ${down ? "descending" : "ascending"}.`);
  };

  const cells = ({ row, number }) => [
    ...kept().map((column) => drawCell(column, row[column.at], record.evidence[number])),
    judged ? el("td", { class: "verdict" }, rowButton(record, number)) : null,
  ];
  const drawRow = (entry) => {
    const own = record.evidence[entry.number] ?? [];
    return el("tbody", {}, el("tr", {}, cells(entry)),
      own.length ? el("tr", { class: "quote" }, el("td", { colspan: kept().length + judged },
        el("ul", {}, own.map((quote, i) => quoted(quotes, first[entry.number] + i, record.id, wrongQuote(record, quote)))))) : null);
  };
  const header = (column) => {
    const sorted = state.at === column;
    const menu = button("⋯", () => openMenu(menu, column), { class: "menu", "aria-label": `Menu of ${column.name}`, "aria-haspopup": "true" });
    return el("th", {
      scope: "col", class: column.number && "number", "data-full": column.name,
      "aria-sort": sorted && (state.down ? "descending" : "ascending"),
    }, el("div", {},
      button(visible(column.name), () => sort(column, sorted && !state.down), { class: "sort", title: `${column.type}: sort` }),
      el("span", { "aria-hidden": "true" }, sorted ? (state.down ? "▼" : "▲") : ""), menu));
  };
  const draw = () => {
    const words = state.filter.toLowerCase();
    rows = entries.filter((entry) => entry.text.includes(words));
    if (state.at) rows = sortRows(rows, state.at, state.down);
    const count = rows.length === entries.length ? plural(rows.length, "row") : `${rows.length.toLocaleString("en")} of ${plural(entries.length, "row")}`;
    grid.replaceChildren(
      el("caption", {}, count + (quotes.length ? `, ${plural(quotes.length, "quote")}` : "")),
      el("thead", {}, el("tr", {}, kept().map(header), judged ? el("td", {}, el("span", { class: "quiet" }, "Verdict")) : null)));
    more();
    unhide.hidden = !state.hidden.size;
    unhide.textContent = `Show ${plural(state.hidden.size, "hidden column")}`;
  };
  const more = () => grid.append(...rows.slice(grid.tBodies.length, grid.tBodies.length + BATCH).map(drawRow));
  scroll.addEventListener("scroll", () => {
    if (scroll.scrollTop + 2 * scroll.clientHeight > scroll.scrollHeight && grid.tBodies.length < rows.length) more();
  }, { passive: true });
  grid.addEventListener("copy", copySelected);

  const openMenu = (opener, column) => {
    const list = popup(opener, `Column ${column.name}`);
    const item = (words, work) => button(words, () => (list.hidePopover(), work()));
    list.append(item("Sort ascending", () => sort(column, false)), item("Sort descending", () => sort(column, true)),
      kept().length > 1 ? item("Hide", () => (state.hidden.add(column), draw())) : "");
    if (record.suql && !column.list) {
      const grouped = `SELECT ${name(column)}, count(*) AS "rows" FROM (${bare(record)}) AS t GROUP BY ${name(column)} ORDER BY 2 DESC`;
      list.append(item("Group by this", () => ask(grouped, `Rows for each ${column.name}`)), onlyOne(column, list));
    }
    list.open();
  };
  const onlyOne = (column, list) => {
    const values = [...new Set(record.rows.map((row) => row[column.at]))].slice(0, MOST_VALUES);
    const choice = el("select", { "aria-label": `Only rows with this ${column.name}` }, el("option", { value: "" }, "Only this value …"),
      values.map((value, i) => el("option", { value: i }, value === null ? "(none)" : shown(value).slice(0, 60))));
    choice.addEventListener("change", () => {
      list.hidePopover();
      const value = values[choice.value];
      ask(`${inner(record)} WHERE ${name(column)} ${literal(value, column)}`, `Only ${column.name} ${value === null ? "(none)" : shown(value)}`);
    });
    return choice;
  };

  const search = el("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows" });
  search.addEventListener("input", () => ((state.filter = search.value), draw()));
  const unhide = button("", () => (state.hidden.clear(), draw()), { class: "plain" });
  const whole = el("div", { class: "rows" }, el("p", { class: "tools" }, entries.length > 8 ? search : null, unhide), scroll, told);
  draw();
  whole.text = (format) => writeText(kept(), rows, format);
  return whole;
}

// How a column is shown: numbers to the right and as many decimals for all, long texts wrapped.
function readColumn(column, at, values) {
  const number = NUMBER.test(column.type) && !column.type.endsWith("[]");
  const plain = number && NAMES_A_THING.test(column.name);
  const known = values.filter((value) => typeof value === "number");
  const small = Math.max(...known.map(Math.abs), 0) < 1;
  const decimals = Math.min(small ? 4 : 2, Math.max(0, ...known.map((value) => (String(value).split(".")[1] ?? "").length)));
  const format = new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const prose = !number && values.some((value) => shown(value).length > PROSE);
  const read = (value) => {
    if (!number || plain || value === null) return shown(value);
    if (typeof value === "string") return /^-?\d+$/.test(value) ? BigInt(value).toLocaleString("en") : value;
    return value !== 0 && Math.abs(value) < 0.5 * 10 ** -decimals ? value.toPrecision(2) : format.format(value);
  };
  return { ...column, at, number, prose, list: column.type.endsWith("[]"), read };
}

function drawCell(column, value, evidence = []) {
  const text = column.read(value);
  const full = shown(value);
  if (!column.prose) {
    const rounded = text !== full;
    return el("td", { class: column.number && "number", "data-full": rounded && full, title: rounded && full }, text);
  }
  const own = evidence.filter((quote) => quote.column === column.name).map((quote) => [full.indexOf(quote.quote), quote.quote.length]);
  const [start, length] = own.find(([found]) => found >= 0) ?? [0, 0];
  const from = start > 2 * BEFORE_QUOTE ? start - BEFORE_QUOTE : 0;
  const clamp = el("div", { class: "clamp" }, from ? "…" : "", full.slice(from, start),
    length ? el("mark", {}, full.slice(start, start + length)) : "", full.slice(start + length));
  const open = full.length > 3 * PROSE && button("all", () => {
    clamp.replaceChildren(full.slice(0, start), length ? el("mark", {}, full.slice(start, start + length)) : "", full.slice(start + length));
    clamp.classList.remove("clamp");
    open.remove();
  }, { class: "plain", "aria-label": "Show the whole text" });
  return el("td", { class: "prose", "data-full": full }, clamp, open);
}

function sortRows(rows, column, down) {
  const order = new Intl.Collator("en", { numeric: true });
  const value = ({ row }) => (column.number && row[column.at] !== null ? Number(row[column.at]) : row[column.at]);
  return rows.toSorted((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return (left === null) - (right === null); // nulls last, either way
    const found = column.number ? left - right : order.compare(shown(left), shown(right));
    return down ? -found : found;
  });
}

function copySelected(event) {
  const selection = getSelection();
  const found = [...event.currentTarget.rows].map((row) => [...row.cells].filter((cell) => selection.containsNode(cell, true))).filter((row) => row.length);
  if (found.length === 1 && found[0].length === 1 && found[0][0].dataset.full === undefined) return;
  event.clipboardData.setData("text/plain", found.map((row) => row.map((cell) => cell.dataset.full ?? cell.textContent).join("\t")).join("\n"));
  event.preventDefault();
}

// All digits, and no cell that a spreadsheet would compute.
function writeText(columns, rows, format) {
  const text = (value) => {
    const flat = shown(value).replace(/\s+/g, " ");
    if (format === "markdown") return flat.replace(/[\\|`<*_[\]]/g, "\\$&");
    return typeof value === "string" && /^[=+\-@]/.test(flat) ? `'${flat}` : flat;
  };
  const lines = [columns.map((column) => text(column.name)), ...rows.map(({ row }) => columns.map((column) => text(row[column.at])))];
  if (format !== "markdown") return lines.map((line) => line.join("\t")).join("\n");
  lines.splice(1, 0, columns.map((column) => (column.number ? "---:" : "---")));
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
}

const bare = (record) => record.suql.trim().replace(/;\s*$/, "");
const inner = (record) => `SELECT * FROM (${bare(record)}) AS t`;
const name = (column) => `"${column.name.replaceAll('"', '""')}"`;

function literal(value, column) {
  if (value === null) return "IS NULL";
  return `= ${column.number || typeof value === "boolean" ? value : `'${shown(value).replaceAll("'", "''")}'`}`;
}

function wrongQuote(record, quote) {
  return record.id && button("wrong", (event) => judge(record, "wrong", { kind: "quote", evidence: quote }, event.currentTarget),
    { class: "plain", "aria-label": "This quote is wrong" });
}

function rowButton(record, number) {
  return button("wrong", (event) => judge(record, "wrong", { kind: "row", key: record.keys[number] }, event.currentTarget),
    { class: "plain", "aria-label": `Row ${number + 1} is wrong` });
}
