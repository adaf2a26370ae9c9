// Puts an answer on a board, an old or a new one.

import { call, get } from "./api.js";
import { button, el, toast, visible } from "./dom.js";
import { problem } from "./editor.js";

export const pin = (record) => button("Pin …", () => choose(record));

// The items of a board without the answers that the server adds to them.
export const asKept = (items) => items.map(({ text, answer, title, chart }) => (text === undefined ? { answer, title, chart } : { text }));

async function choose(record) {
  const dialog = document.getElementById("dialog");
  const opener = document.activeElement;
  const told = el("div", {});
  const name = el("input", { type: "text", required: true, maxlength: 100, pattern: "[\\w .&\\-]+", list: "boards", title: "Letters, digits, blanks, dots, hyphens and &" });
  const { boards } = await get("boards").catch(() => ({ boards: [] }));
  const send = async (event) => {
    event.preventDefault();
    const own = name.value.trim();
    const path = `boards/${encodeURIComponent(own)}`;
    try {
      const board = boards.some((each) => each.name === own) ? await get(path) : { title: own, items: [] };
      await call("PUT", path, { title: board.title, items: asKept([...board.items, { answer: record.id, chart: record.chosen }]) });
      dialog.close();
      toast(`Pinned on the board ${visible(own)}.`);
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  };
  dialog.onclose = () => opener?.focus();
  dialog.replaceChildren(el("form", { onsubmit: send },
    el("h2", {}, "Pin to a board"),
    el("label", {}, "Board", name),
    el("datalist", { id: "boards" }, boards.map((board) => el("option", { value: board.name }))),
    told,
    el("p", { class: "buttons" }, el("button", { type: "submit" }, "Pin"), button("Cancel", () => dialog.close()))));
  dialog.showModal();
}
