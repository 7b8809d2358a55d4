// Hover, keyboard, zoom, pan and saving, for each trial of the page by itself. Without it the page is complete, but static.
"use strict";

const ZOOM_LEAST = 0.3, ZOOM_MOST = 3, PAGE = 10, NO_ROW = -1, PNG_SCALE = 2, PNG_SIDE_MOST = 16000;

function openTrial(section) {
  const viewport = section.querySelector(".viewport");
  const svg = viewport.querySelector("svg.diagram");
  const panel = section.querySelector(".panel");
  const records = JSON.parse(section.querySelector(".records").textContent);
  const events = [...svg.querySelectorAll(".event")];
  const place = new Map(events.map((event, at) => [Number(event.dataset.row), at]));
  const lines = new Map([...section.querySelectorAll("tr[data-row]")].map((line) => [Number(line.dataset.row), line]));
  const evidence = events.map((event, at) => (event.classList.contains("bad") ? at : NO_ROW)).filter((at) => at >= 0);
  let chosen = NO_ROW, zoom = 1;

  function describe(at) {
    const record = records[at];
    const title = element("h3", record.who + ": " + record.text);
    const table = element("table");
    for (const [name, value] of record.fields) {
      const row = element("tr");
      row.append(element("th", name), element("td", value));
      table.append(row);
    }
    panel.classList.remove("waits");
    panel.replaceChildren(title, element("p", record.time), ...record.evidence.map((text) => element("p", text, "alert violated")), table);
  }

  function choose(at, focus) {
    at = Math.max(0, Math.min(events.length - 1, at));
    for (const [which, on] of [[chosen, false], [at, true]]) {
      if (which === NO_ROW) continue;
      events[which].classList.toggle("chosen", on);
      events[which].setAttribute("tabindex", on ? 0 : -1);
      lines.get(Number(events[which].dataset.row)).classList.toggle("chosen", on);
    }
    chosen = at;
    describe(at);
    if (focus) {
      events[at].focus({preventScroll: true});
      show(at);
    }
  }

  // Scrolls the viewport only; the page scrolls if the viewport itself is out of sight.
  function show(at) {
    const strip = events[at].getBoundingClientRect(), seen = viewport.getBoundingClientRect();
    const head = viewport.querySelector(".headline").getBoundingClientRect().height;
    if (strip.top < seen.top + head + 20 || strip.bottom > seen.bottom - 60) {
      viewport.scrollTop += strip.top - seen.top - seen.height / 2;
    }
    if (seen.bottom < 80 || seen.top > innerHeight - 80) viewport.scrollIntoView({block: "nearest"});
  }

  function setZoom(next, x = 0, y = 0) {
    next = Math.max(ZOOM_LEAST, Math.min(ZOOM_MOST, next));
    const left = (viewport.scrollLeft + x) * next / zoom - x, top = (viewport.scrollTop + y) * next / zoom - y;
    zoom = next;
    viewport.style.setProperty("--zoom", zoom);
    viewport.scrollTo(left, top);
  }

  function fit() {
    setZoom((viewport.clientWidth || svg.width.baseVal.value) / svg.viewBox.baseVal.width);
  }

  function walkEvidence(way) {
    if (!evidence.length) return;
    const next = way > 0 ? evidence.find((at) => at > chosen) : evidence.findLast((at) => at < chosen);
    choose(next ?? evidence.at(way > 0 ? 0 : -1), true);
  }

  const actions = {
    in: () => setZoom(zoom * 1.25), out: () => setZoom(zoom / 1.25), fit,
    next: () => walkEvidence(1), previous: () => walkEvidence(-1),
    svg: () => saveSvg(svg), png: () => savePng(svg),
  };
  const keys = {
    ArrowDown: () => choose(chosen + 1, true), ArrowUp: () => choose(chosen - 1, true),
    PageDown: () => choose(chosen + PAGE, true), PageUp: () => choose(chosen - PAGE, true),
    Home: () => choose(0, true), End: () => choose(events.length - 1, true),
    n: actions.next, p: actions.previous, "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.fit,
    Enter: () => lines.get(Number(events[chosen].dataset.row)).scrollIntoView({block: "center"}),
  };

  for (const button of section.querySelectorAll("button[data-do]")) button.onclick = actions[button.dataset.do];
  for (const button of section.querySelectorAll("button[data-to]")) {
    button.onclick = () => place.has(Number(button.dataset.to)) && choose(place.get(Number(button.dataset.to)), true);
  }
  svg.addEventListener("keydown", (press) => {
    if (press.ctrlKey || press.metaKey || press.altKey || !(press.key in keys)) return;
    press.preventDefault();
    keys[press.key]();
  });
  svg.addEventListener("focusin", (focus) => {
    const event = focus.target.closest(".event");
    if (event && events.indexOf(event) !== chosen) choose(events.indexOf(event), false);
  });
  svg.addEventListener("pointerover", (move) => {
    const event = move.target.closest(".event");
    if (event) describe(events.indexOf(event));
  });
  svg.addEventListener("pointerleave", () => chosen !== NO_ROW && describe(chosen));
  svg.addEventListener("click", (click) => {
    const event = click.target.closest(".event");
    if (event) choose(events.indexOf(event), true);
  });
  for (const [row, line] of lines) line.onclick = () => choose(place.get(row), true);
  viewport.addEventListener("wheel", (wheel) => {
    if (!wheel.ctrlKey) return;
    wheel.preventDefault();
    const box = viewport.getBoundingClientRect();
    setZoom(zoom * (wheel.deltaY < 0 ? 1.1 : 1 / 1.1), wheel.clientX - box.left, wheel.clientY - box.top);
  }, {passive: false});
  letDrag(viewport);
  if (events.length) events[0].setAttribute("tabindex", 0);
  if (svg.viewBox.baseVal.width > viewport.clientWidth) setZoom(Math.max(0.62, viewport.clientWidth / svg.viewBox.baseVal.width));
}

// Lets the mouse drag the content of a box; touch devices scroll without it.
function letDrag(box) {
  let last = null;
  box.addEventListener("pointerdown", (press) => {
    if (press.button === 0 && press.pointerType === "mouse") last = press;
  });
  addEventListener("pointermove", (move) => {
    if (!last) return;
    box.classList.add("dragged");
    box.scrollBy(last.clientX - move.clientX, last.clientY - move.clientY);
    last = move;
  });
  addEventListener("pointerup", () => {
    last = null;
    box.classList.remove("dragged");
  });
}

function element(tag, text = "", style = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (style) made.className = style;
  return made;
}

// The picture as a file: at its drawn size, with the theme's colours instead of CSS variables.
function pictureOf(svg) {
  const copy = svg.cloneNode(true), theme = getComputedStyle(svg), style = copy.querySelector("style");
  const rules = [...document.styleSheets].find((sheet) => sheet.ownerNode === svg.querySelector("style")).cssRules;
  const plain = [...rules].filter((rule) => !(rule instanceof CSSMediaRule)).map((rule) => rule.cssText).join("\n");
  style.textContent = plain.replace(/var\((--[a-z-]+)\)/g, (whole, name) => theme.getPropertyValue(name));
  for (const chosen of copy.querySelectorAll(".chosen")) chosen.classList.remove("chosen");
  return new Blob([new XMLSerializer().serializeToString(copy)], {type: "image/svg+xml"});
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function saveSvg(svg) {
  save(pictureOf(svg), "lockstorm.svg");
}

async function savePng(svg) {
  const {width, height} = svg.viewBox.baseVal, image = new Image();
  const scale = Math.min(PNG_SCALE, PNG_SIDE_MOST / Math.max(width, height));
  image.src = URL.createObjectURL(pictureOf(svg));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob((blob) => save(blob, "lockstorm.png"), "image/png");
}

document.querySelectorAll(".trial").forEach(openTrial);
