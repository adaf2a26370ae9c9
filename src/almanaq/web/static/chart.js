// Charts: the server's Vega-Lite specifications, drawn as SVG. The libraries are loaded with the first chart.

import { get } from "./api.js";
import { NUMBER, button, el, label, say, toast, visible } from "./dom.js";
import { problem } from "./editor.js";

const VENDORED = ["vega-6.4.0.min.js", "vega-lite-6.4.3.min.js", "vega-interpreter-2.3.2.js"];
const KINDS = { bar: "Bars", line: "Line", point: "Points", stacked: "Bars in parts" };
const FIT = { type: "fit-x", contains: "padding" };
const AROUND = 50; // pixels of the axis and its title
const NARROW = 500;
let loading = null;

async function library() {
  let last = null;
  for (const name of VENDORED) last = await import(`/static/vendor/${name}`); // each needs the one before
  return { vega: globalThis.vega, compile: globalThis.vegaLite.compile, expr: last.expressionInterpreter };
}

// Compiles a specification without eval; nothing in it is loaded from anywhere.
async function makeView(spec, width, more) {
  const { vega, compile, expr } = await (loading ??= library());
  const compiled = compile(spec, { config: theme(spec, width), logger: vega.logger(vega.Error) }).spec;
  const loader = vega.loader();
  loader.load = loader.sanitize = () => Promise.reject(new Error("a chart loads nothing"));
  return new vega.View(vega.parse(compiled, null, { ast: true }), { expr, loader, logLevel: vega.Error, ...more });
}

function colour(name) {
  const probe = el("span", { hidden: true });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function theme(spec, width) {
  const [ink, soft, line] = ["--ink", "--soft", "--line"].map(colour);
  const words = { labelColor: soft, titleColor: ink, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
  return {
    background: null,
    font: "system-ui, sans-serif",
    axis: { ...words, gridColor: line, domainColor: soft, tickColor: soft, labelLimit: 160 },
    axisXDiscrete: { labelAngle: labelAngle(spec, width), labelOverlap: "greedy" },
    legend: { ...words, orient: width < NARROW ? "bottom" : "right" },
    title: { color: ink, subtitleColor: soft, anchor: "start", fontSize: 14 },
    text: { color: ink },
    view: { stroke: null },
  };
}

// `record.chart` as a figure, with what changes and saves it.
export function chart(record) {
  const canvas = el("div", { class: "canvas" }, el("p", { class: "working" }, "Drawing …"));
  const picture = el("div", { role: "img", "aria-label": "Chart" }, canvas);
  const caption = el("figcaption", { class: "hint" });
  const said = el("div", {});
  let spec = record.chart;
  const draw = async () => {
    picture.setAttribute("aria-label", visible(spec.description));
    caption.textContent = visible([spec.description, spec.title.subtitle].filter(Boolean).join(" Of the rows: "));
    canvas.style.minHeight = `${heightOf(spec)}px`;
    try {
      const view = await makeView({ ...spec, title: undefined, autosize: FIT }, canvas.clientWidth, { renderer: "svg", tooltip: showTip });
      canvas.replaceChildren();
      await view.initialize(canvas).runAsync();
      canvas.setAttribute("aria-hidden", "true"); // the picture around it carries the description
    } catch (error) {
      said.replaceChildren(problem(error));
    }
  };
  const change = async (chosen) => {
    try {
      const found = await get(`answers/${record.id}/chart?${new URLSearchParams(chosen)}`);
      record.chart = spec = found.chart;
      record.chosen = chosen;
      said.replaceChildren();
      await draw();
      figure.dispatchEvent(new CustomEvent("chosen", { bubbles: true }));
      say(spec.description);
      return found.kinds;
    } catch (error) {
      said.replaceChildren(problem(error));
      return null;
    }
  };
  const save = async (kind) => {
    const width = canvas.clientWidth;
    const view = await makeView({ ...spec, width, autosize: FIT, background: colour("--paper") }, width, { renderer: "none" });
    await view.runAsync();
    const blob = kind === "svg"
      ? new Blob([await view.toSVG()], { type: "image/svg+xml" })
      : await new Promise((done) => view.toCanvas(2).then((made) => made.toBlob(done)));
    const href = URL.createObjectURL(blob);
    const words = spec.title.text.match(/[\p{L}\p{N}]+/gu)?.join("-").slice(0, 60) ?? "chart";
    el("a", { href, download: `${words}-${new Date().toISOString().slice(0, 10)}.${kind}` }).click();
    URL.revokeObjectURL(href);
    toast(`Chart saved as ${kind.toUpperCase()}.`);
  };
  const tools = el("details", {}, el("summary", {}, "Change or save the chart"));
  tools.addEventListener("toggle", () => tools.children.length > 1 || tools.append(
    el("div", { class: "tools" }, record.id && choices(record, change),
      button("SVG", () => save("svg"), { "aria-label": "Save the chart as SVG" }),
      button("PNG", () => save("png"), { "aria-label": "Save the chart as PNG" })), said));
  const figure = el("figure", { class: "chart" }, picture, caption, tools);
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    observer.disconnect();
    draw();
  }).observe(figure);
  for (const look of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(look).addEventListener("change", () => figure.isConnected && draw());
  }
  return figure;
}

// The room that a drawing takes, kept free while it is made.
function heightOf({ height, data }) {
  return AROUND + (height.step ? height.step * new Set(data.values.map((mark) => mark.x)).size : height);
}

// Names below an axis lie where there is room for them, else slant, else rise.
function labelAngle({ data }, width) {
  const names = [...new Set(data.values.map((mark) => String(mark.x)))];
  const room = (0.8 * width) / names.length;
  if (Math.max(...names.map((each) => each.length)) * 8 < room) return 0;
  return room > 40 ? -40 : -90;
}

// Selects for the kind, the axes and the colour; the server draws the choice of all rows.
function choices(record, change) {
  const drawn = record.chart.usermeta.almanaq;
  const names = record.columns.map((column) => [column.name, label(column)]);
  const numbers = names.filter((_, at) => NUMBER.test(record.columns[at].type));
  const select = (words, options, chosen) => {
    const made = el("select", {}, options.map(([value, name]) =>
      el("option", { value, selected: value === chosen }, visible(name))));
    made.addEventListener("change", async () => {
      const wanted = values();
      const kinds = await change(wanted);
      if (kinds) {
        last = wanted;
        offer(kinds);
      } else for (const [key, each] of Object.entries(all)) each.value = last[key];
    });
    return [made, el("label", {}, words, made)];
  };
  const parts = {
    kind: select("Kind", Object.entries(KINDS), drawn.kind),
    x: select("Across", names, drawn.x),
    y: select("Up", numbers, drawn.y[0]),
    colour: select("Colour", [["", "none"], ...names], drawn.colour),
  };
  const all = Object.fromEntries(Object.entries(parts).map(([key, [made]]) => [key, made]));
  const values = () => Object.fromEntries(Object.entries(all).map(([key, each]) => [key, each.value]));
  const offer = (kinds) => { for (const each of all.kind.options) each.disabled = !kinds.includes(each.value); };
  let last = values();
  get(`answers/${record.id}/chart?${new URLSearchParams(last)}`).then(({ kinds }) => offer(kinds), () => {});
  return Object.values(parts).map(([, each]) => each);
}

const tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
document.body.append(tip);

function showTip(handler, event, item, value) {
  tip.hidden = value === null || value === undefined;
  if (tip.hidden) return;
  const lines = typeof value === "object" ? Object.entries(value).map(([name, each]) => `${name}: ${each}`) : [value];
  tip.replaceChildren(...lines.map((line) => el("div", {}, visible(line))));
  tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)}px`;
  tip.style.top = `${event.clientY + 12}px`;
}
