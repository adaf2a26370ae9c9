// What a person says of an answer.

import { call } from "./api.js";
import { button, el, toast } from "./dom.js";
import { problem } from "./editor.js";

// Gives a verdict, or takes it back where the button is pressed already.
export async function judge(record, verdict, about, pressed, more = {}) {
  const taken = pressed.getAttribute("aria-pressed") === "true";
  await call("PUT", `answers/${record.id}/verdict`, { verdict: taken ? null : verdict, about, ...more });
  pressed.setAttribute("aria-pressed", String(!taken));
  toast(taken ? "Verdict withdrawn." : `Noted as ${verdict}.`);
}

export function wrong(record) {
  const dialog = document.getElementById("dialog");
  const note = el("textarea", { rows: 2, maxlength: 2000 });
  const suql = el("textarea", { rows: 3 });
  suql.value = record.suql ?? "";
  const name = el("input", { type: "text", placeholder: "column = value" });
  const told = el("div", {});
  const send = async (event) => {
    event.preventDefault();
    const [column, ...rest] = name.value.split("=");
    const missing = rest.length > 0;
    const about = missing ? { kind: "missing", key: { [column.trim()]: rest.join("=").trim() } } : { kind: "answer" };
    const body = { verdict: "wrong", about };
    if (note.value.trim()) body.note = note.value.trim();
    if (suql.value.trim() && suql.value.trim() !== record.suql) body.expected = { suql: suql.value.trim() };
    try {
      await call("PUT", `answers/${record.id}/verdict`, body);
      dialog.close();
      toast("Noted as wrong.");
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  };
  const opener = document.activeElement;
  dialog.onclose = () => opener?.focus();
  dialog.replaceChildren(
    el("form", { onsubmit: send },
      el("h2", {}, "What is wrong?"),
      el("p", { class: "hint" }, "It becomes a test that fails until the answer is right. Single rows and quotes have their own buttons."),
      el("label", {}, "In a few words", note),
      el("label", {}, "A missing row (column = value)", name),
      record.suql && el("label", {}, "The right query, if you know it", suql),
      told,
      el("p", { class: "buttons" }, el("button", { type: "submit" }, "Note it"), button("Cancel", () => dialog.close()))),
  );
  dialog.showModal();
}
