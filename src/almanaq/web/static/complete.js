// Completions of the text under the cursor: a list that keys and the pointer choose from, while the text keeps focus.

import { get } from "./api.js";
import { el, visible } from "./dom.js";

const WAIT = 120;
const MOST = 10_000;
const AFTER_WORD = /[\w"'.]$/;
let lists = 0;

const bare = (text) => text.replace(/^["`]/, "").toLowerCase();
const query = (text, at) => get(`complete?${new URLSearchParams({ text, at })}`);

// `picture` mirrors the text of `area`, and tells where the cursor is; `find` gives {start, items} for a text and a
// place. Enter takes the item that an arrow chose, in a query also the first that begins as what is typed. Gives the
// key handler of the list.
export function completing(area, picture, find = query, prose = false) {
  const list = el("ul", { class: "completions", role: "listbox", id: `completions-${++lists}`, "aria-label": "Completions", hidden: true });
  let found = null;
  let chosen = 0;
  let timer = null;
  let asked = 0;
  area.after(list);
  area.setAttribute("aria-controls", list.id);
  area.setAttribute("aria-autocomplete", "list");

  const close = () => {
    asked += 1;
    clearTimeout(timer);
    list.hidden = true;
    found = null;
    area.removeAttribute("aria-activedescendant");
  };
  const select = (number) => {
    chosen = (number + found.items.length) % found.items.length;
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === chosen)));
    area.setAttribute("aria-activedescendant", list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  };
  const take = (number) => {
    const { text, kind } = found.items[Math.max(number, 0)];
    const { start } = found;
    close();
    area.focus();
    area.setRangeText(text, start, area.selectionStart, "end");
    if (!prose && kind === "value" && area.value[area.selectionStart] !== "'") area.setRangeText("'", area.selectionStart, area.selectionStart, "end");
    area.dispatchEvent(new Event("input"));
    close();
  };
  const place = () => {
    let left = found.start;
    const walk = document.createTreeWalker(picture, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (left > node.data.length) {
        left -= node.data.length;
        continue;
      }
      const range = document.createRange();
      range.setStart(node, left);
      const spot = range.getBoundingClientRect();
      const box = picture.getBoundingClientRect();
      list.style.top = `${spot.bottom - box.top}px`;
      list.style.left = `${Math.max(0, Math.min(spot.left - box.left, box.width - 200))}px`;
      return;
    }
  };
  const ask = async () => {
    const turn = ++asked;
    if (area.value.length > MOST) return;
    const body = await find(area.value, area.selectionStart).catch(() => null);
    if (turn !== asked) return;
    const typed = body && area.value.slice(body.start, area.selectionStart);
    if (!body?.items.length || (body.items.length === 1 && body.items[0].text === typed)) return close();
    found = body;
    list.replaceChildren(...body.items.map((item, number) => el("li", {
      role: "option", id: `${list.id}-${number}`, onpointerdown: (event) => { event.preventDefault(); take(number); },
    }, visible(item.text), " ", el("span", { class: "hint" }, visible(item.detail || item.kind)))));
    list.hidden = false;
    place();
    chosen = -1;
    const part = bare(typed);
    if (!prose && part && bare(body.items[0].text).startsWith(part)) select(0);
  };
  area.addEventListener("input", (event) => {
    close();
    const deleted = event.inputType?.startsWith("delete");
    if (prose || (!deleted && AFTER_WORD.test(area.value.slice(0, area.selectionStart)))) timer = setTimeout(ask, WAIT);
  });
  area.addEventListener("blur", close);

  // Whether the list took the key.
  return (event) => {
    if (event.key === " " && event.ctrlKey) ask();
    else if (found && event.key === "ArrowDown") select(chosen + 1);
    else if (found && event.key === "ArrowUp") select(Math.max(chosen, 0) - 1);
    else if (found && (event.key === "Tab" || (event.key === "Enter" && chosen >= 0)) && !event.ctrlKey && !event.metaKey && !event.shiftKey) take(chosen);
    else if (found && event.key === "Escape") close();
    else {
      if (event.key === "Enter") close(); // the query runs
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
}
