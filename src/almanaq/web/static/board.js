// A board: its items are moved, written and removed here, and its queries run again by the server.

import { call, get, stream } from "./api.js";
import { card } from "./card.js";
import { button, el, plural, say, visible } from "./dom.js";
import { askAbove, problem, progress } from "./editor.js";
import { asKept } from "./pin.js";

const main = document.getElementById("main");
const told = document.getElementById("told");
const path = `boards/${encodeURIComponent(main.dataset.board)}`;
let board = await get(path);
let under = null;

const stop = button("Stop", () => under?.abort());
const run = button("Run again", () => go(askAbove === null ? {} : { max_calls: askAbove }), { class: "main" });
stop.hidden = true;
document.getElementById("actions").prepend(run, stop,
  button("Add text", () => save([...board.items, { text: "New text" }])),
  button("Rename", () => {
    const title = prompt("Title", board.title || board.name);
    if (title) save(board.items, title);
  }),
  button("Delete board", remove));
for (const place of main.querySelectorAll("[data-item]")) equip(place, Number(place.dataset.item));

function equip(place, number) {
  const item = board.items[number];
  if (item.record) {
    place.querySelector(".made").replaceChildren(card(item.record));
    place.addEventListener("chosen", () => {
      item.chart = item.record.chosen;
      put(board.items);
    });
  }
  const move = (by) => () => {
    const items = board.items.toSpliced(number, 1);
    save(items.toSpliced(number + by, 0, item));
  };
  const edit = () => {
    const key = item.text === undefined ? "title" : "text";
    const area = el("textarea", { rows: 4, maxlength: key === "text" ? 10000 : 200, "aria-label": key === "text" ? "Text" : "Title" });
    area.value = item[key];
    place.replaceChildren(area, el("p", { class: "buttons" },
      button("Save", () => save(board.items.with(number, { ...item, [key]: area.value }))), button("Cancel", () => location.reload())));
    area.focus();
  };
  const name = item.title ?? "text";
  place.append(el("p", { class: "buttons" },
    button("Edit", edit, { "aria-label": `Edit ${visible(name)}` }),
    button("Up", move(-1), { disabled: number === 0, "aria-label": `Move ${visible(name)} up` }),
    button("Down", move(1), { disabled: number === board.items.length - 1, "aria-label": `Move ${visible(name)} down` }),
    button("Remove", () => confirm(`Remove ${visible(name)} from this board?`) && save(board.items.toSpliced(number, 1)), { "aria-label": `Remove ${visible(name)}` })));
}

async function save(items, title) {
  if (await put(items, title)) location.reload();
}

async function put(items, title = board.title) {
  try {
    return await call("PUT", path, { title, items: asKept(items) });
  } catch (error) {
    told.replaceChildren(problem(error));
  }
}

async function remove() {
  if (!confirm("Delete this board? Its answers stay.")) return;
  try {
    await call("DELETE", path);
    location.assign("/boards");
  } catch (error) {
    told.replaceChildren(problem(error));
  }
}

async function go(options) {
  const line = el("p", { class: "working" }, "Running …");
  told.replaceChildren(line);
  under = new AbortController();
  stop.hidden = !(run.disabled = true);
  try {
    const done = await stream(`${path}/run`, { options }, under.signal, (name, data) => {
      if (name === "progress") line.textContent = progress(data);
    });
    const failures = Object.entries(done.failed);
    if (!failures.length) return location.reload();
    const dear = failures.some(([, each]) => each.type.endsWith(":BudgetExceeded")) && askAbove !== null && options.max_calls !== undefined;
    told.replaceChildren(el("div", { role: "alert", class: "problem" },
      el("strong", {}, `${plural(failures.length, "query")} failed and kept the rows of before. `.replace("querys", "queries")),
      el("ul", {}, failures.map(([number, each]) => el("li", {}, `${visible(done.items[number].title)}: ${visible(each.detail)}`)))),
    el("p", { class: "buttons" }, button("Show the others", () => location.reload()), dear && button("Run without this limit", () => go({}))));
  } catch (error) {
    told.replaceChildren(error.name === "AbortError" ? el("p", { class: "note" }, "Stopped.") : problem(error));
  } finally {
    under = null;
    stop.hidden = !(run.disabled = false);
  }
  say("Run ended.");
}
