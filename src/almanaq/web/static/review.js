// Turns that were drawn at random, judged one after another.

import { call } from "./api.js";
import { toast } from "./dom.js";

for (const entry of document.querySelectorAll("[data-answer]")) {
  for (const pressed of entry.querySelectorAll("[data-verdict]")) {
    pressed.addEventListener("click", async () => {
      const verdict = pressed.getAttribute("aria-pressed") === "true" ? null : pressed.dataset.verdict;
      await call("PUT", `answers/${entry.dataset.answer}/verdict`, { verdict, about: { kind: "answer" }, sampled: true });
      for (const each of entry.querySelectorAll("[data-verdict]")) each.setAttribute("aria-pressed", String(each.dataset.verdict === verdict));
      toast(verdict ? `Noted as ${verdict}.` : "Verdict withdrawn.");
    });
  }
}
