// The tables of the source, read when somebody looks.

import { get } from "./api.js";
import { button, el, plural, visible } from "./dom.js";
import { problem } from "./editor.js";

export function schema(details) {
  const body = details.querySelector(".body");
  const list = el("ul", {});
  const search = el("input", { type: "search", "aria-label": "Search tables and columns", placeholder: "Search" });
  const more = el("p", {});
  let asked = 0;
  const load = async (cursor = null) => {
    const turn = ++asked;
    const given = new URLSearchParams({ search: search.value, limit: 50, ...(cursor && { cursor }) });
    try {
      const page = await get(`tables?${given}`);
      if (turn !== asked) return;
      if (!cursor) list.replaceChildren();
      list.append(...page.tables.map(entry));
      more.replaceChildren(...(page.next ? [button("More", () => load(page.next), { class: "plain" })] : []));
    } catch (error) {
      more.replaceChildren(problem(error));
    }
  };
  details.addEventListener("toggle", () => details.open && !list.isConnected && (body.append(search, list, more), load()));
  search.addEventListener("input", () => load());
}

function entry(table) {
  const details = el("details", {}, el("summary", {}, visible(table.name), table.rows === null ? "" : ` (${plural(table.rows, "row")})`));
  details.addEventListener("toggle", async () => {
    if (!details.open || details.children.length > 1) return;
    const relation = await get(`tables/${encodeURIComponent(table.name)}`);
    details.append(
      el("p", { class: "hint" }, visible(relation.description)),
      el("ul", {}, relation.columns.map((column) => el("li", {},
        el("strong", {}, visible(column.name)), ` ${column.type}`,
        column.kind === "free_text" ? ", prose" : "", column.private ? ", private" : "",
        column.values.length ? el("span", { class: "hint" }, `: ${visible(column.values.slice(0, 12).join(", "))}`) : null))));
  });
  return el("li", {}, details);
}
