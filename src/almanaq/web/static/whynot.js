// Why a row is not in a result: the row is named by a column, and each condition is told with its quotes.

import { call, get } from "./api.js";
import { NUMBER, el, say } from "./dom.js";
import { card } from "./card.js";
import { problem } from "./editor.js";

export async function whyNot(record, place) {
  let columns;
  try {
    columns = await columnsOf(record);
  } catch (error) {
    place.replaceChildren(problem(error));
    return;
  }
  const choice = el("select", {}, columns.map((column) => el("option", { value: column.name }, column.name)));
  const value = el("input", { type: "text", required: true });
  const told = el("div", {});
  const form = el("form", {},
    el("h3", {}, "Why isn’t a row here?"),
    el("label", { class: "field" }, "Column that names it ", choice),
    el("label", { class: "field" }, "Its value ", value),
    el("button", { type: "submit" }, "Tell me why"), told);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const column = columns.find((each) => each.name === choice.value);
    const key = NUMBER.test(column.type) && value.value.trim() !== "" && !isNaN(value.value) ? Number(value.value) : value.value;
    told.replaceChildren(el("p", { class: "working" }, "Looking …"));
    try {
      const found = await call("POST", "why-not", { suql: record.suql, key: { [column.name]: key } });
      told.replaceChildren(card({ ...found, suql: null, columns: [] }));
      say("The conditions are shown for that row.");
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  });
  place.replaceChildren(form);
  value.focus();
}

// The columns by which a row may be named: those of the key first, and no prose.
async function columnsOf(record) {
  const name = record.tables?.[0] ?? record.evidence?.flat()[0]?.relation ?? (await get("tables?limit=1")).tables[0].name;
  const relation = await get(`tables/${encodeURIComponent(name)}`);
  const short = relation.columns.filter((column) => column.kind !== "free_text" && !column.type.endsWith("[]"));
  const named = (column) => (/name|title/i.test(column.name) ? 0 : relation.key.includes(column.name) ? 1 : 2);
  return short.sort((a, b) => named(a) - named(b));
}
