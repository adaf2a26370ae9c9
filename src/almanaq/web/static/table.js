// The rows of an answer: sorted, filtered and copied; what a column's menu asks is the next query. Of many rows those in
// view are drawn, each one line high.

import { MOST_ROWS, stream } from "./api.js";
import { NUMBER, button, copy, el, label, plural, popup, say, shown, toast, visible } from "./dom.js";
import { askAbove, problem } from "./editor.js";
import { quoted } from "./quotes.js";
import { read } from "./reader.js";
import { reachable, rowsOf, selection } from "./rows.js";
import { judging } from "./verdicts.js";

const NAMES_A_THING = /(^|[_ ])(id|no|nr|key|code|zip|postcode|year|phone)$/i;
const PROSE = 60; // characters from which on a cell is wrapped
const FEW = 200; // rows that are all drawn
const AROUND = 30; // rows drawn before and after those in view
const AHEAD = 300; // rows beyond these that are asked for before they are drawn
const PAUSE = 250; // from typing to asking the server, in milliseconds
const MOST_VALUES = 8;
const BEFORE_QUOTE = 60;

// `again` is given the record of a query that a column's menu asked, and what it is; `edited` what it tells the server.
export function table(record, again, edited) {
  const columns = record.columns.map((column, at) => readColumn(column, at, record.rows.map((row) => row[at])));
  const first = [];
  record.evidence.reduce((count, own, number) => ((first[number] = count), count + own.length), 0);
  const rows = rowsOf(record);
  const all = reachable(record);
  const many = all > FEW;
  const quotes = record.evidence.flat();
  const judged = Number(Boolean(record.id && record.keys)); // a further column for the verdicts on rows
  const state = { at: null, down: false, filters: new Map(), hidden: new Set() };
  const caption = el("caption", {});
  const header = el("thead", {});
  const body = el("tbody", {}); // of many rows
  const grid = el("table", {}, caption, header);
  const space = el("div", {}, grid);
  const scroll = el("div", { class: many ? "scroll many" : "scroll", tabindex: 0, role: "group", "aria-label": "Rows" }, space);
  const told = el("div", {});
  const drawn = { first: 0, last: 0, height: 36, loading: false };
  const kept = () => columns.filter((column) => !state.hidden.has(column));

  const ask = async (suql, words) => {
    told.replaceChildren(el("p", { class: "working" }, "Running …"));
    try {
      const options = askAbove === null ? {} : { max_calls: askAbove };
      again(await stream("sql", { suql, max_rows: MOST_ROWS, options, ...edited(words) }, undefined, () => {}), words);
      told.replaceChildren();
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  };
  const sort = (column, down) => {
    if ((record.trace?.partial || all < record.rows_total) && record.suql) {
      return ask(`${inner(record)} ORDER BY ${name(column)}${down ? " DESC" : ""}`, `Sorted by ${label(column)}`);
    }
    [state.at, state.down] = [column, down];
    drawHeader();
    return select(`Sorted by ${label(column)}, ${down ? "descending" : "ascending"}.`);
  };
  const select = async (words) => {
    try {
      await rows.select(state.at, state.down, [...state.filters]);
      told.replaceChildren();
    } catch (error) {
      told.replaceChildren(problem(error));
      return;
    }
    scroll.scrollTop = 0;
    body.replaceChildren();
    draw();
    say(words ?? caption.textContent);
  };

  const drawRow = (entry, place) => {
    if (!entry) return el("tr", {}, el("td", { colspan: kept().length + judged }, "…"));
    const own = record.evidence[entry.number] ?? [];
    return el("tr", { "aria-rowindex": many && place + 2 },
      kept().map((column) => drawCell(column, entry.row[column.at], own)),
      judged ? el("td", { class: "verdict" }, record.keys[entry.number] && rowButton(record, entry.number)) : null,
      many && quotes.length ? el("td", {}, own.length ? quoteButton(entry.number, own) : "") : null);
  };
  const quoteButton = (number, own) => button(`“${visible(own[0].quote)}”${own.length > 1 ? ` +${own.length - 1}` : ""}`,
    (event) => read(quotes, first[number], record.id, event.currentTarget), { class: "plain" });
  const drawQuotes = ({ number }) => {
    const own = record.evidence[number] ?? [];
    return own.length > 0 && el("tr", { class: "quote" }, el("td", { colspan: kept().length + judged },
      el("ul", {}, own.map((quote, i) => quoted(quotes, first[number] + i, record.id, wrongQuote(record, quote))))));
  };
  const drawHeader = () => {
    const focused = [...header.querySelectorAll("button, input")].indexOf(document.activeElement);
    header.replaceChildren(el("tr", { "aria-rowindex": many && 1 }, kept().map(headerCell), judged ? el("th", { scope: "col", class: "verdict" }, "Check") : null,
      many && quotes.length ? el("th", { scope: "col" }, "Quotes") : null));
    if (filtering.getAttribute("aria-expanded") === "true") header.append(el("tr", {}, kept().map(filterCell), judged ? el("td") : null));
    header.querySelectorAll("button, input")[focused]?.focus();
    unhide.hidden = !state.hidden.size;
    unhide.textContent = `Show ${plural(state.hidden.size, "hidden column")}`;
  };
  const headerCell = (column) => {
    const sorted = state.at === column;
    const menu = button("⋯", () => openMenu(menu, column), { class: "menu", "aria-label": `Menu of ${label(column)}`, "aria-haspopup": "true" });
    return el("th", {
      scope: "col", class: column.number && "number", "data-full": column.name,
      "aria-sort": sorted && (state.down ? "descending" : "ascending"),
    }, el("div", {},
      button(visible(label(column)), () => sort(column, sorted && !state.down), { class: "sort", title: `${column.type}: sort` }),
      el("span", { "aria-hidden": "true" }, sorted ? (state.down ? "▼" : "▲") : ""), menu));
  };
  const filterCell = (column) => {
    const field = el("input", { type: "search", "aria-label": `Filter ${label(column)}`, title: "part of a text, =value, !=value, >5, <=5, 1..5, = (missing)" });
    field.value = state.filters.get(column) ?? "";
    field.addEventListener("input", () => {
      state.filters.set(column, field.value);
      clearTimeout(drawn.timer);
      drawn.timer = setTimeout(select, PAUSE);
    });
    return el("td", {}, field);
  };
  // All rows where they are few; else those in view, at their place in a space as high as all would be.
  const draw = () => {
    const { height } = drawn;
    const inView = Math.floor(scroll.scrollTop / height);
    drawn.first = many ? Math.max(0, inView - AROUND) : 0;
    drawn.last = many ? Math.min(rows.total, inView + Math.ceil(scroll.clientHeight / height) + AROUND) : rows.total;
    const places = Array.from({ length: drawn.last - drawn.first }, (_, by) => drawn.first + by);
    caption.textContent = (rows.total === all ? plural(all, "row") : `${rows.total.toLocaleString("en")} of ${plural(all, "row")}`) + (quotes.length ? `, ${plural(quotes.length, "quote")}` : "");
    if (!many) {
      while (header.nextElementSibling) header.nextElementSibling.remove(); // the header keeps the focus
      grid.append(...places.map((place) => el("tbody", {}, drawRow(rows.at(place)), drawQuotes(rows.at(place)))));
      return;
    }
    drawLines(places);
    grid.setAttribute("aria-rowcount", rows.total + 1);
    space.style.paddingTop = `${drawn.first * height}px`;
    space.style.height = `${rows.total * height + caption.offsetHeight + header.offsetHeight}px`;
    const cells = [...header.rows[0].cells]; // columns grow with what comes into view, and never shrink
    cells.map((cell) => cell.offsetWidth).forEach((width, number) => { cells[number].style.minWidth = `${width}px`; });
    load([...places, Math.min(drawn.last + AHEAD, rows.total) - 1].find((place) => place >= 0 && !rows.at(place)));
  };
  // What is drawn already stays, with the focus in it.
  const drawLines = (places) => {
    const focused = body.contains(document.activeElement);
    if (body.parentElement !== grid) grid.append(body);
    for (const line of [...body.rows]) if (line.place < drawn.first || line.place >= drawn.last) line.remove();
    let next = body.firstElementChild;
    for (const place of places) {
      const entry = rows.at(place);
      if (next?.place === place && next.entry === entry) next = next.nextElementSibling;
      else {
        const line = Object.assign(drawRow(entry, place), { place, entry });
        if (next?.place === place) next.replaceWith(line);
        else body.insertBefore(line, next);
        next = line.nextElementSibling;
      }
    }
    if (focused && !body.contains(document.activeElement)) scroll.focus({ preventScroll: true });
  };
  const load = async (missing) => {
    if (missing === undefined || drawn.loading) return;
    drawn.loading = true;
    try {
      await rows.load(missing);
    } catch (error) {
      told.replaceChildren(problem(error));
      return;
    } finally {
      drawn.loading = false;
    }
    draw();
  };
  scroll.addEventListener("scroll", () => {
    const inView = scroll.scrollTop / drawn.height;
    const near = (inView < drawn.first + AROUND / 3 && drawn.first > 0) || (inView + scroll.clientHeight / drawn.height > drawn.last - AROUND / 3 && drawn.last < rows.total);
    if (near) requestAnimationFrame(draw);
  }, { passive: true });
  grid.addEventListener("copy", copySelected);

  const openMenu = (opener, column) => {
    const list = popup(opener, `Column ${label(column)}`);
    const item = (words, work) => button(words, () => (list.hidePopover(), work()));
    list.append(item("Sort ascending", () => sort(column, false)), item("Sort descending", () => sort(column, true)),
      kept().length > 1 ? item("Hide", () => (state.hidden.add(column), redraw(), unhide.focus())) : "");
    if (record.suql && !column.list) {
      const grouped = `SELECT ${name(column)}, count(*) AS "rows" FROM (${bare(record)}) AS t GROUP BY ${name(column)} ORDER BY 2 DESC`;
      list.append(item("Group by this", () => ask(grouped, `Rows for each ${label(column)}`)), ...onlyOne(column, list));
    }
    list.open();
  };
  const onlyOne = (column, list) => {
    const values = [...new Set(record.rows.map((row) => row[column.at]))];
    const words = (value) => (value === null ? "(none)" : shown(value));
    const choose = (value) => {
      list.hidePopover();
      ask(`${inner(record)} WHERE ${name(column)} ${literal(value, column)}`, `Only ${label(column)} ${words(value)}`);
    };
    const found = el("div", { class: "values" });
    const search = el("input", { type: "search", "aria-label": `Search values of ${label(column)}` });
    const draw = () => {
      const near = values.filter((value) => words(value).toLowerCase().includes(search.value.toLowerCase()));
      found.replaceChildren(...near.slice(0, MOST_VALUES).map((value) => button(words(value).slice(0, 60), () => choose(value))),
        near.length > MOST_VALUES ? el("span", { class: "hint" }, `and ${plural(near.length - MOST_VALUES, "value")} more`) : near.length ? "" : el("span", { class: "hint" }, "No such value in these rows"));
    };
    search.addEventListener("input", draw);
    search.addEventListener("keydown", (event) => event.key === "Enter" && found.querySelector("button")?.click());
    draw();
    return [el("label", {}, "Only this value", search), found];
  };

  const filtering = button("Filter", () => {
    const open = filtering.getAttribute("aria-expanded") !== "true";
    filtering.setAttribute("aria-expanded", String(open));
    drawHeader();
    if (open) header.querySelector("input").focus();
    else if (state.filters.size) select(state.filters.clear());
  }, { "aria-expanded": "false" });
  const redraw = () => {
    body.replaceChildren();
    drawHeader();
    draw();
  };
  const unhide = button("", () => (state.hidden.clear(), redraw()), { class: "plain" });
  const whole = el("div", { class: "rows" }, el("p", { class: "tools" }, all > 8 ? filtering : null, unhide), scroll, told);
  redraw();
  whole.isKept = Boolean(record.id);
  whole.selection = () => selection(state.at, state.down, state.filters);
  if (rows.all) whole.text = (format) => writeText(kept(), rows.found, format);
  return whole;
}

// How a column is shown: numbers to the right and as many decimals for all, long texts wrapped.
export function readColumn(column, at, values) {
  const number = NUMBER.test(column.type) && !column.type.endsWith("[]");
  const plain = number && NAMES_A_THING.test(column.name);
  const known = values.filter((value) => typeof value === "number");
  const largest = Math.max(...known.map(Math.abs), 0);
  const decimals = Math.min(largest < 1 ? 4 : 2, Math.max(0, ...known.map((value) => (String(value).split(".")[1] ?? "").length)));
  const useGrouping = largest >= 10_000; // years have four digits
  const format = new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, useGrouping });
  const prose = !number && values.some((value) => shown(value).length > PROSE);
  const read = (value) => {
    if (!number || plain || value === null) return shown(value);
    if (typeof value === "string") return /^-?\d+$/.test(value) ? BigInt(value).toLocaleString("en") : value;
    return value !== 0 && Math.abs(value) < 0.5 * 10 ** -decimals ? value.toPrecision(2) : format.format(value.toFixed(decimals));
  };
  return { ...column, at, number, prose, list: column.type.endsWith("[]"), read };
}

export function drawCell(column, value, evidence = []) {
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

export function copySelected(event) {
  const selection = getSelection();
  const found = [...event.currentTarget.rows].map((row) => [...row.cells].filter((cell) => selection.containsNode(cell, true))).filter((row) => row.length);
  if (found.length === 1 && found[0].length === 1 && found[0][0].dataset.full === undefined) return;
  event.clipboardData.setData("text/plain", found.map((row) => row.map((cell) => cell.dataset.full ?? cell.textContent).join("\t")).join("\n"));
  event.preventDefault();
}

// The rows shown, copied; all that pass the filters, downloaded: the server sorts and filters what it keeps. `keep` gives
// the record under whose id it keeps them.
export function take(rows, keep) {
  const download = async (format) => {
    try {
      const { id, rows_total: count, trace, not_kept: reason } = await keep();
      if (!id) throw new Error(reason);
      el("a", { href: `/api/v1/answers/${id}/rows?format=${format.toLowerCase()}&${rows.selection()}`, download: true }).click();
      toast(`${trace?.partial ? `The first ${plural(count, "row")}` : "Rows"} downloaded as ${format}.`);
    } catch (error) {
      toast(visible(error.message));
    }
  };
  const opener = button("Copy, download …", () => {
    const list = popup(opener, "Copy or download rows");
    const item = (words, work) => list.append(button(words, () => (list.hidePopover(), work())));
    if (rows.text) for (const name of ["TSV", "Markdown"]) item(`Copy as ${name}`, () => copy(rows.text(name.toLowerCase()), "Rows copied."));
    if (rows.isKept) for (const name of ["CSV", "JSON", "Parquet"]) item(`Download ${name}`, () => download(name));
    list.open();
  }, { "aria-haspopup": "true" });
  return opener;
}

// All digits, and no cell that a spreadsheet would compute.
export function writeText(columns, rows, format) {
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
  return record.id && judging(record, "wrong", "Mark as wrong", { kind: "quote", evidence: quote },
    { class: "plain judging", "aria-label": "Mark as wrong: this quote" });
}

function rowButton(record, number) {
  return judging(record, "wrong", "Mark as wrong", { kind: "row", key: record.keys[number] },
    { class: "plain judging", "aria-label": `Mark as wrong: row ${number + 1}` });
}
