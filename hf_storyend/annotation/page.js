"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const metrics = data.metrics.map((metric) => metric.name);
const columns = ["sample", "annotator", "item", "context", "ending", ...metrics, "error_type"];
// Spreadsheets run a cell that starts like this; the wide forms count in some locales.
const formula = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

let annotator = 0;
let order = [];
let answers = {}; // item -> column -> text
let place = 0;
let active = metrics[0];

// The sheet: the same cells as in the CSV files beside this page.

const safeCell = (text) => (formula.test(text) ? `'${text}` : text);
const plainCell = (cell) => (cell.startsWith("'") && formula.test(cell) ? cell.slice(1) : cell);
const quoted = (text) => `"${safeCell(text).replaceAll('"', '""')}"`;

function sheetText() {
  const rows = order.map((number) => {
    const item = data.items[number];
    const cells = {
      sample: data.sample, annotator: String(annotator), item: item.id,
      context: data.stories[item.story].join(" "), ending: item.ending, ...answers[item.id],
    };
    return columns.map((column) => cells[column] ?? "");
  });
  return [columns, ...rows].map((row) => row.map(quoted).join(",") + "\r\n").join("");
}

function parseRows(text) {
  const rows = [];
  let row = [], cell = "", inside = false;
  const endRow = () => {
    row.push(cell);
    if (row.length > 1 || cell !== "") rows.push(row);
    row = [];
    cell = "";
  };
  text = text.replace(/^\ufeff/, "");
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (inside) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') { cell += '"'; at++; }
      else inside = false;
    } else if (character === '"' && cell === "") inside = true;
    else if (character === ",") { row.push(cell); cell = ""; }
    else if (character === "\n") endRow();
    else if (character !== "\r") cell += character;
  }
  if (inside) throw new Error("A quotation mark is not closed: the sheet is cut off or damaged.");
  endRow();
  return rows;
}

function readSheet(text) {
  const [header = [], ...rows] = parseRows(text);
  const found = {}, problems = [], seen = new Set(), known = new Set(data.items.map((item) => item.id));
  const missing = ["sample", "annotator", "item", ...metrics].filter((column) => !header.includes(column));
  if (missing.length) throw new Error(`Columns are missing: ${missing.join(", ")}. Is this a sheet?`);
  rows.forEach((row, index) => {
    const cell = (column) => plainCell(row[header.indexOf(column)] ?? "").trim();
    const problem = (column, what) => problems.push(`Row ${index + 2}, column ${column}: ${what}`);
    const item = cell("item");
    if (cell("sample") !== data.sample) return problem("sample", "this sheet belongs to other stories.");
    if (cell("annotator") !== String(annotator)) return problem("annotator", `not ${annotator}, but “${cell("annotator")}”.`);
    if (!known.has(item)) return problem("item", `“${item}” is not known.`);
    if (seen.has(item)) return problem("item", `${item} is there twice.`);
    seen.add(item);
    const given = {};
    for (const metric of metrics) {
      if (!["", "0", "1", "2"].includes(cell(metric))) problem(metric, `must be 0, 1 or 2, not “${cell(metric)}”.`);
      else if (cell(metric)) given[metric] = cell(metric);
    }
    const kind = header.includes("error_type") ? cell("error_type") : "";
    if (kind && !data.errors.some((error) => error.name === kind)) problem("error_type", `“${kind}” is not known.`);
    else if (kind) given.error_type = kind;
    if (Object.keys(given).length) found[item] = given;
  });
  if (problems.length) throw new Error(problems.join("\n"));
  return found;
}

// Keeping: every answer at once, under a name of this sample and annotator.

const storageName = () => `storyend ${data.sample} annotator ${annotator}`;

function keep() {
  try {
    localStorage.setItem(storageName(), JSON.stringify({ answers, place }));
    byId("saved").textContent = "Saved";
  } catch {
    byId("saved").textContent = "Not saved";
    say("This browser does not keep your scores. Download the sheet before you close the page.");
  }
}

// Gives what has to be said about it.
function restore() {
  answers = {};
  place = 0;
  try {
    const kept = JSON.parse(localStorage.getItem(storageName()) ?? "{}");
    answers = kept.answers ?? {};
    place = Math.min(kept.place ?? 0, order.length - 1);
    return "";
  } catch {
    return "What this browser had kept can't be read. If you have downloaded a sheet, import it.";
  }
}

// Showing.

function say(text) {
  byId("message").textContent = text;
  byId("message").hidden = !text;
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const current = () => data.items[order[place]];
const answered = (item) => metrics.every((metric) => answers[item.id]?.[metric] !== undefined);
const unscored = (item) => metrics.find((metric) => answers[item.id]?.[metric] === undefined);

function buildQuestions() {
  for (const metric of data.metrics) {
    const buttons = metric.meanings.map((meaning, score) => {
      const button = element("button", { type: "button" }, element("b", { textContent: score }), element("small", { textContent: meaning }));
      button.dataset.score = score;
      button.addEventListener("click", () => giveScore(metric.name, String(score)));
      return button;
    });
    const legend = element("legend", {}, element("b", { textContent: metric.name }), ` ${metric.question}`);
    const group = element("fieldset", { id: `metric-${metric.name}` }, legend, element("div", { className: "choices" }, ...buttons));
    byId("metrics").append(group);
  }
  const buttons = data.errors.map((error) => {
    const button = element("button", { type: "button" }, error.title, element("small", { textContent: error.meaning }));
    button.dataset.error = error.name;
    button.addEventListener("click", () => nameError(error.name));
    return button;
  });
  const legend = element("legend", {}, element("b", { textContent: "Main error" }), " (optional)");
  byId("errors").append(element("fieldset", {}, legend, element("div", { className: "choices" }, ...buttons)));
  byId("error-keys").append(...data.errors.flatMap((error) => [element("kbd", { textContent: error.key.toUpperCase() }), " "]));
}

function show() {
  const item = current(), given = answers[item.id] ?? {};
  const done = data.items.filter(answered).length;
  byId("count").textContent = `${done} of ${order.length} scored`;
  byId("progress").max = order.length;
  byId("progress").value = done;
  byId("done").hidden = done < order.length;
  byId("download").classList.toggle("main", done === order.length);
  byId("place").textContent = `Ending ${place + 1} of ${order.length}`;
  byId("context").replaceChildren(
    ...data.stories[item.story].map((sentence) => element("p", { dir: "auto", textContent: sentence })),
  );
  byId("ending").textContent = item.ending;
  for (const metric of metrics) {
    const group = byId(`metric-${metric}`);
    group.setAttribute("aria-current", String(metric === active));
    for (const button of group.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.score === given[metric]));
  }
  for (const button of document.querySelectorAll("[data-error]"))
    button.setAttribute("aria-pressed", String(button.dataset.error === given.error_type));
  byId("previous").disabled = place === 0;
  byId("next").disabled = place === order.length - 1;
  byId("unscored").disabled = done === order.length;
}

function go(to) {
  if (to !== place) scrollTo(0, 0);
  place = Math.max(0, Math.min(order.length - 1, to));
  active = unscored(current()) ?? metrics[0];
  say("");
  keep();
  show();
}

function goUnscored() {
  for (let step = 1; step <= order.length; step++) {
    const to = (place + step) % order.length;
    if (!answered(data.items[order[to]])) return go(to);
  }
}

function answer(column, value) {
  const given = { ...answers[current().id], [column]: value };
  if (value === undefined) delete given[column];
  answers[current().id] = given;
  keep();
}

function giveScore(metric, value) {
  answer(metric, value);
  active = unscored(current()) ?? metric;
  show();
}

function nameError(name) {
  answer("error_type", answers[current().id]?.error_type === name ? undefined : name);
  show();
}

function start(number) {
  annotator = number;
  order = data.orders[number - 1];
  history.replaceState(null, "", `#${number}`);
  const problem = restore();
  byId("who").textContent = `Annotator ${number}`;
  byId("start").hidden = true;
  byId("guidelines").open = false;
  byId("scoring").hidden = byId("bar").hidden = false;
  go(place);
  if (problem) say(problem);
}

// Hands.

function download() {
  const missing = order.length - data.items.filter(answered).length;
  say(missing ? `${missing} of ${order.length} endings are not scored yet. The sheet can be imported again to go on.` : "");
  const link = element("a", { download: `sheet_${annotator}.csv` });
  link.href = URL.createObjectURL(new Blob([sheetText()], { type: "text/csv" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function importSheet(file) {
  try {
    const found = readSheet(await file.text());
    for (const [item, given] of Object.entries(found)) answers[item] = { ...answers[item], ...given };
    go(place);
    say(`Answers for ${Object.keys(found).length} endings were imported.`);
  } catch (error) {
    say(`${file.name} was not imported.\n${error.message}`);
  }
}

function pressed(event) {
  if (byId("scoring").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  const error = data.errors.find((each) => each.key === event.key.toLowerCase());
  // Enter on a score means the next ending; on any other control it means that control.
  const elsewhere = event.target.closest("button, input, label, summary, a") && !event.target.dataset.score;
  const moves = { ArrowRight: () => go(place + 1), ArrowLeft: () => go(place - 1) };
  const marks = { ArrowUp: -1, ArrowDown: 1 };
  if (event.key in moves) moves[event.key]();
  else if (event.repeat) return;
  else if (event.key === "Enter" && !elsewhere) place < order.length - 1 ? go(place + 1) : goUnscored();
  else if (["0", "1", "2"].includes(event.key)) giveScore(active, event.key);
  else if (event.key in marks) {
    active = metrics[(metrics.indexOf(active) + marks[event.key] + metrics.length) % metrics.length];
    show();
  } else if (error) nameError(error.name);
  else return;
  event.preventDefault();
}

buildQuestions();
data.orders.forEach((_, index) => {
  const button = element("button", { type: "button", textContent: `Annotator ${index + 1}` });
  button.addEventListener("click", () => start(index + 1));
  byId("annotators").append(button);
});
byId("previous").addEventListener("click", () => go(place - 1));
byId("next").addEventListener("click", () => go(place + 1));
byId("unscored").addEventListener("click", goUnscored);
byId("download").addEventListener("click", download);
byId("import").addEventListener("change", async (event) => {
  if (event.target.files.length) await importSheet(event.target.files[0]);
  event.target.value = "";
});
document.addEventListener("keydown", pressed);
// The same sheet in a second tab: the later answer counts in both.
window.addEventListener("storage", (event) => {
  if (!annotator || event.key !== storageName() || !event.newValue) return;
  answers = JSON.parse(event.newValue).answers ?? {};
  show();
});
window.addEventListener("hashchange", () => location.reload());

const wanted = Number(location.hash.slice(1));
if (Number.isInteger(wanted) && wanted >= 1 && wanted <= data.orders.length) start(wanted);
else {
  byId("start").hidden = false;
  byId("guidelines").open = true;
}
