// The query of an answer: edit, estimate, run.

import { call, stream } from "./api.js";
import { button, el, money, plural, say, visible } from "./dom.js";
import { highlighted } from "./suql.js";

// `ran` is given the record of a run.
export function editor(suql, ran) {
  const area = el("textarea", { spellcheck: "false", "aria-label": "SUQL query", maxlength: 100000 });
  area.value = suql;
  const picture = el("pre", { "aria-hidden": "true" });
  const told = el("div", { class: "told" });
  let fault = null;
  let plan = null;
  const draw = () => picture.replaceChildren(...highlighted(area.value, fault), "\n");
  area.addEventListener("input", () => {
    fault = plan = null;
    run.disabled = false;
    draw();
  });
  const failed = (error) => {
    fault = error.body?.position ?? null;
    draw();
    told.replaceChildren(problem(error));
    if (fault) {
      area.focus();
      area.setSelectionRange(fault.start, fault.end);
    }
    told.scrollIntoView({ block: "nearest" });
  };
  const explain = async () => {
    try {
      const found = await call("POST", "explain", { suql: area.value });
      plan = { mark: found.plan, suql: area.value };
      const calls = found.predicted.calls;
      const sent = found.columns_sent.length ? `; leaves this machine: ${found.columns_sent.join(", ")}` : "";
      const said = calls ? `About ${plural(calls, "call")}, ${money(found.predicted.money)}${sent}.` : "No model is asked.";
      told.replaceChildren(el("p", { class: "note" }, said), steps(found.stages));
      say(said);
    } catch (error) {
      failed(error);
    }
  };
  const go = async () => {
    run.disabled = true;
    told.replaceChildren(el("p", { class: "working" }, "Running …"));
    try {
      const body = { suql: area.value };
      if (plan?.suql === area.value) body.plan = plan.mark;
      const record = await stream("sql", body, undefined, () => {});
      told.replaceChildren();
      say(`${plural(record.rows_total, "row")}.`);
      ran(record);
    } catch (error) {
      failed(error);
    }
    run.disabled = false;
  };
  const run = button("Run", go);
  draw();
  return el("div", {},
    el("div", { class: "editor" }, picture, area),
    el("p", { class: "buttons" }, button("Estimate", explain), run),
    told);
}

function steps(stages) {
  return el("details", {}, el("summary", {}, "Plan"),
    el("ol", {}, stages.map((stage) => el("li", {}, `${stage.stage} ${stage.name}`, el("pre", { class: "suql" }, stage.what)))));
}

export function problem(error) {
  return el("div", { role: "alert", class: "problem" },
    el("strong", {}, error.body?.title ?? "It failed", ". "),
    visible(error.message));
}
