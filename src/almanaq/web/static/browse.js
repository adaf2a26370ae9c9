// One table: what its columns hold, and its rows, sorted and filtered by the server.

import { MOST_ROWS, get, stream } from "./api.js";
import { button, el, plural, say, shown, visible } from "./dom.js";
import { problem } from "./editor.js";
import { copySelected, drawCell, readColumn, take, writeText } from "./table.js";

const at = (id) => document.getElementById(id);
const name = at("main").dataset.table;
const path = `tables/${encodeURIComponent(name)}`;
const kept = new URLSearchParams(location.search); // in the address, so that Back and a reload keep them
const view = { sort: kept.get("sort"), filters: kept.getAll("filter") };
let asked = 0;
let drawn = [];

at("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  narrow(at("filter-column").value + at("filter-operator").value + at("filter-value").value);
});
load();
describe();

function narrow(condition) {
  const before = view.filters;
  if (!before.includes(condition)) view.filters = [...before, condition];
  load(null, before);
}

// A filter that the server refuses is taken back to those `before`, and the rows stay.
async function load(cursor = null, before = null) {
  const turn = ++asked;
  const given = new URLSearchParams({ limit: 100, ...(view.sort && { sort: view.sort }), ...(cursor && { cursor }) });
  const asQuery = new URLSearchParams(view.sort ? { sort: view.sort } : {});
  for (const each of view.filters) for (const to of [given, asQuery]) to.append("filter", each);
  drawFilters();
  try {
    const page = await get(`${path}/rows?${given}`);
    if (turn !== asked) return;
    history.replaceState(null, "", `${location.pathname}?${asQuery}`);
    at("as-query").href = `/sql#${encodeURIComponent(page.query)}`;
    draw(page, cursor !== null);
  } catch (error) {
    if (turn !== asked) return;
    if (before) {
      view.filters = before;
      drawFilters();
      at("rows").querySelector(".problem")?.remove();
      at("rows").prepend(problem(error));
    } else at("rows").replaceChildren(problem(error));
  }
}

function drawFilters() {
  at("filters").replaceChildren(...view.filters.map((each) => el("li", {},
    button(`${visible(each)} ×`, () => { view.filters = view.filters.filter((one) => one !== each); load(); }, { "aria-label": `Remove filter ${visible(each)}` }))));
}

function draw(page, more) {
  const columns = page.columns.map((column, at) => readColumn(column, at, page.rows.map((row) => row[at])));
  drawn = [...(more ? drawn : []), ...page.rows.map((row) => ({ row }))];
  const rows = page.rows.map((row) => el("tr", {}, columns.map((column) => drawCell(column, row[column.at]))));
  if (more) at("rows").querySelector("tbody").append(...rows);
  else {
    at("rows").style.minHeight = `${at("rows").offsetHeight}px`; // fewer rows do not scroll the page
    at("rows").replaceChildren(el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Rows" },
      el("table", { oncopy: copySelected }, el("caption", { class: "quiet" }, `Rows of ${visible(name)}`),
        el("thead", {}, el("tr", {}, page.columns.map(header))), el("tbody", {}, rows))));
  }
  const count = at("rows").querySelectorAll("tbody tr").length;
  at("rows").querySelector(".more")?.remove();
  const next = page.next && button("More rows", () => load(page.next));
  const cut = page.cells_cut ? " Long texts are shown by their beginning." : "";
  const told = page.next && page.rows_total ? `${count.toLocaleString("en")} of ${plural(page.rows_total, "row")} shown.` : `${plural(count, "row")} shown${page.next ? ", there are more" : ""}.`;
  const all = page.query.replace(/\s+LIMIT 100$/, "");
  const taken = take({ isKept: true, selection: () => "", text: (format) => writeText(columns, drawn, format) },
    () => stream("sql", { suql: all, max_rows: MOST_ROWS }, undefined, () => {}));
  at("rows").append(el("p", { class: "more buttons" }, next || null, taken, el("span", { class: "hint" }, told + cut)));
  say(told);
}

function header(column) {
  const sortable = column.kind !== "free_text" && !column.type.endsWith("[]");
  const down = view.sort === `-${column.name}`;
  const sorted = down ? "descending" : view.sort === column.name ? "ascending" : null;
  const turn = () => { view.sort = sorted === "ascending" ? `-${column.name}` : column.name; load(); };
  const mark = sorted ? (down ? " ▼" : " ▲") : "";
  return el("th", { scope: "col", "aria-sort": sorted, title: column.type },
    sortable ? button(visible(column.name) + mark, turn, { class: "plain" }) : visible(column.name));
}

async function describe() {
  let profile;
  try {
    profile = await get(`${path}/profile`);
  } catch (error) {
    at("columns").after(problem(error));
    return;
  }
  if (profile.rows === null || profile.read < profile.rows) {
    at("columns").caption.textContent = `The first ${plural(profile.read, "row")} were read for this profile.`;
    at("columns").caption.className = "";
  }
  const lines = new Map([...at("columns").querySelectorAll("[data-column]")].map((line) => [line.dataset.column, line]));
  for (const column of profile.columns) {
    const cells = lines.get(visible(column.name))?.querySelectorAll("td");
    if (!cells || column.private) continue;
    cells[1].textContent = column.nulls.toLocaleString("en");
    cells[2].textContent = column.distinct === null ? "" : column.distinct.toLocaleString("en");
    cells[3].replaceChildren(...values(column, profile.read));
  }
}

function values(column, rows) {
  const bounds = column.least === null ? null : `${shown(column.least)} to ${shown(column.most)} `;
  if (column.sample) return [el("ul", {}, column.sample.map((text) => el("li", {}, `“${shown(text)}”`)))];
  if (column.histogram) return [bounds, histogram(column)];
  if (!column.top) return [];
  if (column.distinct === rows && rows > 1) return [bounds ?? "", "all different"];
  const single = !column.type.endsWith("[]");
  return [bounds ?? "", el("ul", {}, column.top.map((each) => {
    const text = `${shown(each.value)} (${each.rows.toLocaleString("en")})`;
    return el("li", {}, single && each.value !== "" ? button(text, () => (narrow(`${column.name}=${each.value}`), at("filter").scrollIntoView()), { class: "plain", title: "Only rows with this value" }) : text);
  }))];
}

function histogram(column) {
  const made = (kind, given) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [key, value] of Object.entries(given)) node.setAttribute(key, value);
    return node;
  };
  const most = Math.max(...column.histogram.map((bar) => bar.rows));
  const picture = made("svg", { class: "histogram", viewBox: `0 0 ${column.histogram.length} 10`, preserveAspectRatio: "none", role: "img", "aria-label": `Histogram of ${visible(column.name)}, most rows in one bar: ${most}` });
  picture.append(...column.histogram.map((bar, x) => made("rect", { x: x + 0.05, y: 10 - (10 * bar.rows) / most, width: 0.9, height: (10 * bar.rows) / most })));
  return picture;
}
