// The page on which answers are labelled: one after the other, by keys; saving downloads labels.jsonl.
"use strict";

const { rows, tasks, allowed } = JSON.parse(document.getElementById("data").textContent);
const part = (name) => document.getElementById(name);
const isOpen = (row) => row.score === null;
// An override of the direction of text could show another answer than the one that is labelled.
const visible = (char) => `\\u${char.codePointAt(0).toString(16).padStart(4, "0")}`;
const inert = (text) => String(text).replace(/[^\P{C}\n\r\t]/gu, visible);
let at = Math.max(rows.findIndex(isOpen), 0), changed = false;

function show() {
  const row = rows[at], rule = allowed[tasks[at]], done = rows.filter((one) => !isOpen(one)).length;
  part("progress").textContent = `${done} of ${rows.length} answers have a label`;
  part("question").textContent = `Answer ${at + 1}: question ${inert(row.question)}`;
  for (const name of ["prompt", "answer", "target"]) part(name).textContent = inert(row[name] ?? "");
  part("of-target").hidden = row.target === null;
  const choices = Array.isArray(rule) ? [] : Object.entries(rule);
  part("choices").replaceChildren(...choices.map(([name, worth], place) => choice(name, worth, place)));
  part("of-number").hidden = choices.length > 0;
  if (choices.length === 0) {
    part("range").textContent = `Score from ${rule[0]} to ${rule[1]}, then Enter`;
    Object.assign(part("number"), { min: rule[0], max: rule[1], value: row.score ?? "" });
  }
  part("said").textContent = isOpen(row) ? "no label yet" : `label: ${row.score}`;
}

function choice(name, worth, place) {
  const button = document.createElement("button");
  const key = place < 9 ? `${place + 1} · ` : "";
  button.type = "button";
  button.textContent = `${key}${name}`;
  button.setAttribute("aria-pressed", String(rows[at].score === name));
  button.addEventListener("click", () => label(name));
  return button;
}

function label(score) {
  rows[at].score = score;
  changed = true;
  const next = rows.findIndex((row, place) => place > at && isOpen(row));
  if (score !== null && next >= 0) at = next;
  show();
  if (!part("of-number").hidden) part("number").focus();
}

function go(step) {
  at = Math.min(Math.max(at + step, 0), rows.length - 1);
  show();
}

function nextOpen() {
  const later = rows.findIndex((row, place) => place > at && isOpen(row));
  const found = later >= 0 ? later : rows.findIndex(isOpen);
  if (found >= 0) at = found;
  show();
}

function save() {
  const text = rows.map((row) => JSON.stringify(row)).join("\n") + "\n";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  link.download = "labels.jsonl";
  link.click();
  URL.revokeObjectURL(link.href);
  changed = false;
}

function take() {
  const input = part("number"), score = input.valueAsNumber;
  if (Number.isFinite(score) && input.checkValidity()) label(score);
  else input.reportValidity();
}

const acts = { previous: () => go(-1), next: () => go(1), open: nextOpen, clear: () => label(null), save };
for (const [name, act] of Object.entries(acts)) part(name).addEventListener("click", act);
const keys = { ArrowLeft: "previous", ArrowRight: "next", u: "open", Backspace: "clear", s: "save" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === part("number")) {
    if (event.key === "Enter") take();
    return;
  }
  const button = part("choices").children[Number(event.key) - 1];
  if (button !== undefined) button.click();
  else if (event.key in keys) acts[keys[event.key]]();
  else return;
  event.preventDefault();
});
window.addEventListener("beforeunload", (event) => {
  if (changed) event.preventDefault();
});
show();
