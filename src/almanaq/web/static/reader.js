// The reading pane: the whole text that a quote stands in, with the quote marked; a dialog where there is no room beside.

import { get } from "./api.js";
import { button, el, say, visible } from "./dom.js";

const WIDE = matchMedia("(min-width: 60rem)");
let opener = null;

// Documents have their path for a key.
export function passageName({ column, key, passage }) {
  const part = column === "text" && { pdf: "page", pptx: "slide" }[key.split(".").pop().toLowerCase()];
  return `${part || column} ${passage + 1}`;
}

// `quotes` are all of an answer, in order; `index` says which to show.
export async function read(quotes, index, answer, from = document.activeElement) {
  opener = from;
  const quote = quotes[index];
  const place = new URLSearchParams({
    relation: quote.relation, key: quote.key, column: quote.column, passage: quote.passage, answer,
  });
  let body;
  try {
    const cell = await get(`cells?${place}`);
    body = passage(cell.text, quote);
  } catch (error) {
    body = el("p", { role: "alert", class: "problem" }, error.message);
  }
  const step = (by, text) =>
    button(text, () => read(quotes, index + by, answer, opener), { disabled: !quotes[index + by] });
  show(
    el("div", { class: "reading" },
      el("h2", { tabindex: -1 }, `${quote.relation} ${quote.key}, ${passageName(quote)}`),
      el("p", {}, "Asked: ", visible(quote.question)),
      body,
      el("p", { class: "buttons" }, step(-1, "Previous quote"), step(1, "Next quote"), button("Close", close)),
      el("p", { class: "hint" }, `Quote ${index + 1} of ${quotes.length}`)),
  );
}

// A text with one part marked. Offsets count as JavaScript does.
function passage(text, quote) {
  const end = quote.start + quote.quote.length;
  const mark = el("mark", {}, text.slice(quote.start, end));
  const made = el("div", { class: "passage", tabindex: 0, role: "group", "aria-label": "The whole text" },
    text.slice(0, quote.start), mark, text.slice(end));
  requestAnimationFrame(() => mark.scrollIntoView({ block: "center" }));
  return made;
}

function show(content) {
  const pane = document.getElementById("reader");
  const dialog = document.getElementById("dialog");
  if (WIDE.matches) {
    dialog.close();
    pane.replaceChildren(content);
    pane.hidden = false;
  } else {
    pane.hidden = true;
    dialog.replaceChildren(content);
    dialog.onclose = restore;
    if (!dialog.open) dialog.showModal();
  }
  content.querySelector("h2").focus();
  say("Text shown, quote marked.");
}

export function close() {
  const dialog = document.getElementById("dialog");
  document.getElementById("reader").hidden = true;
  if (dialog.open) dialog.close();
  else restore();
}

function restore() {
  if (opener?.isConnected) opener.focus();
}

document.getElementById("reader").addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    event.stopPropagation();
    close();
  }
});
