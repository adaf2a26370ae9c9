// What a person says of an answer.

import { call, get } from "./api.js";
import { button, el, toast } from "./dom.js";
import { problem } from "./editor.js";

const ANSWER = { kind: "answer" };
const write = ({ kind, key, evidence }) => kind + JSON.stringify(Object.entries(key ?? evidence ?? {}).sort());

// A button that gives a verdict; pressed, it takes it back.
export function judging(record, verdict, text, about = ANSWER, given = {}) {
  const own = () => (record.verdicts ?? []).filter((each) => each.verdict === verdict &&
    (write(each.about) === write(about) || (about === ANSWER && each.about.kind === "missing")));
  const made = button(text, async () => {
    const before = own();
    if (!before.length && about === ANSWER && verdict === "wrong") return wrong(record, made);
    for (const each of before) await judge(record, made, null, each.about);
    if (!before.length) await judge(record, made, verdict, about);
  }, { class: "judging", ...given });
  made.draw = () => made.setAttribute("aria-pressed", String(own().length > 0));
  made.draw();
  return made;
}

async function judge(record, opener, verdict, about, more = {}) {
  ({ verdicts: record.verdicts } = await call("PUT", `answers/${record.id}/verdict`, { verdict, about, ...more }));
  for (const each of opener.closest(".card").querySelectorAll(".judging")) each.draw();
  toast(verdict ? `Noted as ${verdict}.` : "Verdict withdrawn.");
  const { sampled_accuracy: drawn, accuracy } = await get("about");
  const { judged, share, low, high } = drawn.judged ? drawn : accuracy;
  const percent = (part) => (100 * part).toFixed(0);
  document.getElementById("measured").textContent = judged
    ? `${percent(share)} % of ${judged} judged (95 %: ${percent(low)}–${percent(high)} %)` : "none judged yet";
}

function wrong(record, opener) {
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
    const about = missing ? { kind: "missing", key: { [column.trim()]: rest.join("=").trim() } } : ANSWER;
    const body = {};
    if (note.value.trim()) body.note = note.value.trim();
    if (suql.value.trim() && suql.value.trim() !== record.suql) body.expected = { suql: suql.value.trim() };
    try {
      await judge(record, opener, "wrong", about, body);
      dialog.close();
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  };
  dialog.onclose = () => opener.focus();
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
