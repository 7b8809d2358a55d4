// Filters, selection and keyboard navigation of the matrix. Without it the table is complete, but shows no cell's details.
"use strict";

const grid = document.querySelector(".grid");
const panel = document.querySelector(".panel");
const filters = document.querySelector(".filters");
const launcher = document.querySelector("[data-launcher]").dataset.launcher;
const cells = JSON.parse(document.querySelector(".cells").textContent);
const boxes = [...grid.querySelectorAll("td[data-cell]")];
let chosen = null;

function element(tag, text = "", style = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (style) made.className = style;
  return made;
}

function command(words) {
  const line = element("div", "", "command"), copy = element("button", "Copy", "copy");
  copy.type = "button";
  line.append(element("code", launcher + words.replace(/^lockstorm/, "")), copy);
  letCopy(line);
  return line;
}

function letCopy(line) {
  const code = line.querySelector("code"), copy = line.querySelector("button");
  copy.onclick = async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch { // some browsers refuse this to a local file: the reader can copy the selection
      getSelection().selectAllChildren(code);
    }
  };
}

function details(cell) {
  const table = element("table");
  const sides = [
    ["result", cell.result, cell.expected], ["control", cell.control, cell.control_expected],
  ];
  for (const [name, result, expected] of sides) {
    if (!result) continue; // libraries have no control
    const row = element("tr");
    const shown = expected && expected !== result ? result + " (expected: " + expected + ")" : result;
    row.append(element("th", name), element("td", shown));
    table.append(row);
  }
  const parts = [element("h3", cell.scenario + " · " + cell.lock), element("p", cell.sentence)];
  if (cell.store) parts.splice(1, 0, element("p", cell.store + " store", "hint"));
  if (cell.odd) parts.push(element("p", cell.mismatch, "alert violated"));
  parts.push(table);
  if (cell.reason) parts.push(element("p", cell.reason));
  for (const [name, text] of cell.more ?? []) parts.push(element("p", name, "hint"), element("p", text));
  if (cell.replay) parts.push(element("p", "Again:", "hint"), command(cell.replay));
  if (cell.control_replay) parts.push(element("p", "Its control, without the fault:", "hint"), command(cell.control_replay));
  return parts;
}

function choose(box, focus) {
  if (chosen) {
    chosen.classList.remove("chosen");
    chosen.tabIndex = -1;
  }
  chosen = box;
  box.classList.add("chosen");
  box.tabIndex = 0;
  panel.classList.remove("waits");
  panel.replaceChildren(...details(cells[box.dataset.cell]));
  if (focus) box.focus();
}

// Chooses the next visible cell that has details, in a direction.
function walk(down, across) {
  let row = chosen.parentElement.rowIndex, column = chosen.cellIndex;
  for (;;) {
    row += down;
    column += across;
    const line = row > 0 && grid.rows[row], box = line && line.cells[column];
    if (!line || column < 1 || (across && !box)) return;
    if (box && "cell" in box.dataset && !box.hidden && !box.parentElement.hidden) return choose(box, true);
  }
}

function edge(way) {
  const row = [...chosen.parentElement.querySelectorAll("td[data-cell]:not([hidden])")];
  if (row.length) choose(row.at(way), true);
}

const keys = {
  ArrowUp: () => walk(-1, 0), ArrowDown: () => walk(1, 0), ArrowLeft: () => walk(0, -1), ArrowRight: () => walk(0, 1),
  Home: () => edge(0), End: () => edge(-1),
};

// Fades cells that do not match the filters, and hides locks and scenarios without a matching cell.
function filter() {
  const results = new Set([...filters.querySelectorAll("[name=result]:checked")].map((box) => box.value));
  const onlyOdd = filters.querySelector("[name=odd]").checked;
  const words = filters.querySelector("[name=words]").value.trim().toLowerCase();
  const known = new Set([...filters.querySelectorAll("[name=result]")].map((box) => box.value));
  const fits = (cell) => (results.has(cell.result) || !known.has(cell.result)) && (!onlyOdd || cell.odd) &&
    (cell.lock + " " + cell.scenario).toLowerCase().includes(words);
  const columns = new Set(), rows = new Set();
  for (const box of boxes) {
    const fit = fits(cells[box.dataset.cell]);
    box.classList.toggle("faded", !fit);
    if (!fit) continue;
    columns.add(box.cellIndex);
    rows.add(box.parentElement);
  }
  for (const group of grid.tBodies) {
    for (const row of group.rows) row.hidden = !rows.has(row);
    const head = group.querySelector(".kind");
    if (head) head.hidden = [...group.rows].every((row) => row.hidden);
  }
  for (const row of grid.rows) {
    for (const box of row.cells) if (box.cellIndex > 0) box.hidden = !columns.has(box.cellIndex);
  }
  const first = boxes.find((box) => !box.hidden && !box.parentElement.hidden);
  if (first && (!chosen || chosen.hidden || chosen.parentElement.hidden)) {
    if (chosen) chosen.tabIndex = -1;
    first.tabIndex = 0;
  }
}

grid.addEventListener("click", (click) => {
  const box = click.target.closest("td[data-cell]");
  if (box) choose(box, true);
});
grid.addEventListener("focusin", (focus) => {
  if ("cell" in focus.target.dataset && focus.target !== chosen) choose(focus.target, false);
});
grid.addEventListener("keydown", (press) => {
  if (press.ctrlKey || press.metaKey || press.altKey || !(press.key in keys) || !chosen) return;
  press.preventDefault();
  keys[press.key]();
});
document.querySelectorAll(".story .command").forEach(letCopy);
filters.addEventListener("input", filter);
filter();
