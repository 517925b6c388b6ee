"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const ending = data.sentences.length + 1;
const sentences = [...data.sentences, data.words.map((word) => word.word)];
const title = (sentence) => (sentence === ending ? "Ending" : `Sentence ${sentence}`);
const graphOf = (place) => (data.graphs && place.sentence < ending ? data.graphs[place.sentence - 1][place.position - 1] : []);
// Lower weights would be shown as 0.000.
const minWeight = 0.0005, maxRows = 12;

let chosen = null;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Attention of one kind, state or knowledge, of a word: places by weight, highest first.
function attentionOf(kind, place) {
  const found = [];
  for (const matrix of data.attentions) {
    if (matrix.kind !== kind || matrix.query_sentence !== place.sentence) continue;
    matrix.weights[place.position - 1].forEach((weight, index) => found.push({ sentence: matrix.key_sentence, position: index + 1, weight }));
  }
  return found.sort((one, other) => other.weight - one.weight);
}

function triplesOf(graphs) {
  const found = graphs.flatMap((graph) =>
    graphOf(graph).map((triple) => ({ ...triple, sentence: graph.sentence, position: graph.position, weight: graph.weight * triple.weight })),
  );
  return found.sort((one, other) => other.weight - one.weight);
}

const wordAt = (place) => sentences[place.sentence - 1][place.position - 1];
const buttonAt = (place) => document.querySelector(`[data-sentence="${place.sentence}"][data-position="${place.position}"]`);
const number = (weight) => element("td", { className: "number", textContent: weight.toFixed(3) });

function bar(weight) {
  const meter = element("meter", { min: 0, max: 1, value: weight });
  meter.setAttribute("aria-label", `weight ${weight.toFixed(3)}`);
  return element("td", { className: "bar" }, meter);
}

function row(text, note, weight) {
  const cell = element("td", {}, text, " ", element("small", { textContent: note }));
  return element("tr", {}, cell, bar(weight), number(weight));
}

function fill(id, rows) {
  byId(id).replaceChildren(...(rows.length ? rows : [element("tr", {}, element("td", { textContent: "None." }))]));
}

// The highest weights as rows; returns a sentence about the others.
function fillWeights(id, found, describe) {
  const shown = found.filter((item) => item.weight >= minWeight).slice(0, maxRows);
  fill(id, shown.map((item) => row(...describe(item), item.weight)));
  const left = found.length - shown.length;
  return left ? `${left} more with ${found.slice(shown.length).reduce((sum, item) => sum + item.weight, 0).toFixed(3)} together. ` : "";
}

function highlight(states, graphs) {
  for (const button of document.querySelectorAll("button.word")) {
    button.style.setProperty("--state-weight", 0);
    button.style.setProperty("--knowledge-weight", 0);
  }
  for (const state of states) buttonAt(state).style.setProperty("--state-weight", state.weight);
  for (const graph of graphs) {
    // A word without triples has an empty graph: there is no knowledge to mark.
    if (graphOf(graph).length) buttonAt(graph).style.setProperty("--knowledge-weight", graph.weight);
  }
}

function facts(place, states) {
  if (place.sentence < ending) return states.length ? "Attention of the encoder when it reads this word." : "This word attends to no other sentence.";
  return `Probability ${data.words[place.position - 1].probability.toFixed(4)}, given the words before it.`;
}

function show() {
  const states = attentionOf("state", chosen), graphs = attentionOf("knowledge", chosen);
  highlight(states, graphs);
  byId("chosen").textContent = wordAt(chosen);
  byId("facts").textContent = facts(chosen, states);
  const atSentence = (place) => [wordAt(place), title(place.sentence).toLowerCase()];
  byId("other-words").textContent = fillWeights("words", states, atSentence);
  showTriples(graphs);
  showSources(chosen.sentence === ending ? data.words[chosen.position - 1].sources : null);
}

function showSources(sources) {
  byId("sources-part").hidden = !sources;
  if (!sources) return;
  const pointed = [
    ...sources.triples.map((triple) => ({ text: `${triple.head} · ${triple.relation} · ${triple.tail}`, note: `triple at ${triple.word}, sentence ${triple.sentence}`, weight: triple.share })),
    ...sources.story.map((place) => ({ text: place.word, note: `copied from sentence ${place.sentence}`, weight: place.share })),
    { text: "vocabulary", note: "", weight: sources.vocabulary },
  ];
  fillWeights("sources", pointed.sort((one, other) => other.weight - one.weight), (item) => [item.text, item.note]);
}

function showTriples(graphs) {
  byId("triples-part").hidden = data.system.knowledge === null;
  const more = fillWeights("triples", triplesOf(graphs), (triple) =>
    [`${triple.head} · ${triple.relation} · ${triple.tail}`, `at ${wordAt(triple)}`]);
  const empty = graphs.filter((graph) => !graphOf(graph).length).reduce((sum, graph) => sum + graph.weight, 0);
  byId("other-triples").textContent = graphs.length ? `${more}${empty.toFixed(3)} to words without triples.` : "";
}

// How likely the ending is without a part, in words.
function effectText(effect) {
  if (effect.effect === null) return "impossible";
  if (effect.factor === null) return "practically impossible";
  if (effect.factor >= 1.05) return `${effect.factor.toFixed(1)} times less likely`;
  return effect.factor * 1.05 <= 1 ? `${(1 / effect.factor).toFixed(1)} times more likely` : "as likely";
}

function showEffects() {
  const named = [
    ...data.effects.triples.map((one) => [`${one.head} · ${one.relation} · ${one.tail}`, one]),
    ...(data.effects.knowledge ? [["all triples", data.effects.knowledge]] : []),
    ...data.effects.sentences.map((one) => [`sentence ${one.sentence}`, one]),
  ];
  byId("effects-part").hidden = !named.length;
  fill("effects", named.map(([name, effect]) =>
    element("tr", {}, element("td", { textContent: `without ${name}` }), element("td", { textContent: effectText(effect) }))));
}

function choose(place, isFocused) {
  if (chosen) {
    buttonAt(chosen).setAttribute("aria-pressed", "false");
    buttonAt(chosen).tabIndex = -1;
  }
  chosen = place;
  buttonAt(place).setAttribute("aria-pressed", "true");
  // One stop for the Tab key; the arrows go on from there.
  buttonAt(place).tabIndex = 0;
  if (isFocused) buttonAt(place).focus();
  show();
}

function neighbour(place, key) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
  if (!step) return null;
  const sentence = Math.min(ending, Math.max(1, place.sentence + step[0]));
  const position = Math.min(sentences[sentence - 1].length, Math.max(1, place.position + step[1]));
  return { sentence, position };
}

function wordButton(place) {
  const button = element("button", { type: "button", className: "word", textContent: wordAt(place), tabIndex: -1, dir: "auto" });
  button.classList.toggle("graph", graphOf(place).length > 0);
  button.dataset.sentence = place.sentence;
  button.dataset.position = place.position;
  button.setAttribute("aria-pressed", "false");
  if (data.oov_positions.some(([sentence, position]) => sentence === place.sentence && position === place.position))
    button.title = "out of the vocabulary";
  button.addEventListener("click", () => choose(place, true));
  // A finger that taps also "points": the click follows anyway.
  button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && choose(place, false));
  return button;
}

function build() {
  sentences.forEach((words, index) => {
    const buttons = words.map((_, place) => wordButton({ sentence: index + 1, position: place + 1 }));
    const line = element("div", { className: "sentence" }, element("span", { textContent: title(index + 1) }), element("div", {}, ...buttons));
    line.classList.toggle("ending", index + 1 === ending);
    byId("story").append(line);
  });
  fill("clues", data.clues.map((clue) => {
    const words = clue.words.slice(0, 4).map((word) => `${word.word} ${word.weight.toFixed(2)}`).join(", ");
    return element("tr", {}, element("td", { textContent: title(clue.sentence) }), element("td", { textContent: words }));
  }));
  byId("notes").replaceChildren(...data.notes.map((note) => element("li", { textContent: note })));
  byId("knowledge-sample").hidden = data.system.knowledge === null;
  showEffects();
  byId("story").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const place = neighbour(chosen, event.key);
    if (!place) return;
    event.preventDefault();
    choose(place, true);
  });
  choose({ sentence: ending, position: 1 }, false);
}

build();
