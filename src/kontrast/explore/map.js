// The map, the search by example, and what the lists below share: rows, pictures, downloads. All text goes into the
// page as text; nothing here asks the network for anything.

const bytes = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
const numbers = (text, Kind) => new Kind(bytes(text).buffer);
const n = data.names.length;
const rows = {
  n, names: data.names, splits: data.splits, classes: data.classes, k: data.k,
  split: numbers(data.split, Uint8Array),
  label: data.label && numbers(data.label, Int16Array),
  at: numbers(data.at, Uint16Array),
  near: numbers(data.near, n > 65535 ? Uint32Array : Uint16Array),
  cosine: numbers(data.cosine, Uint8Array),
  outlier: numbers(data.outlier, Int16Array),
  error: data.error && numbers(data.error, Uint8Array),
  suggested: data.suggested && numbers(data.suggested, Int16Array),
  group: numbers(data.group, Uint32Array),
};
const className = (label) => (label < 0 ? "" : rows.classes ? rows.classes[label] : String(label));
const make = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
};

// ------------------------------------------------------------------------------------------------------------ pictures

const pictures = data.pictures && { ...data.pictures, sizes: numbers(data.pictures.sizes, Uint8Array), open: new Map() };
const KEPT = 40; // sheets that stay decoded

function sheet(number) {
  const open = pictures.open;
  let image = open.get(number);
  if (image) open.delete(number); // again at the end: the oldest is first
  else {
    image = new Image();
    image.src = pictures.sheets[number];
  }
  open.set(number, image);
  if (open.size > KEPT) open.delete(open.keys().next().value);
  return image;
}

function paint(canvas, row) {
  const per = pictures.across ** 2, image = sheet(Math.floor(row / per));
  const draw = () => {
    const place = row % per, side = pictures.side;
    const [h, w] = [pictures.sizes[2 * row], pictures.sizes[2 * row + 1]];
    const size = Math.round(canvas.dataset.size * Math.min(2, devicePixelRatio || 1));
    canvas.width = canvas.height = size;
    const ink = canvas.getContext("2d"), scale = size / Math.max(h, w);
    ink.imageSmoothingEnabled = Math.max(h, w) > 40; // pixels of small images stay pixels
    ink.drawImage(image, (place % pictures.across) * side, Math.floor(place / pictures.across) * side, w, h,
      (size - w * scale) / 2, (size - h * scale) / 2, w * scale, h * scale);
    canvas.dataset.drawn = row;
  };
  if (image.complete && image.naturalWidth) draw();
  else image.addEventListener("load", draw, { once: true });
}

function picture(row, size) {
  if (!pictures) return make("span", "blank", rows.names[row]);
  const canvas = make("canvas");
  canvas.dataset.size = size;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", rows.names[row]);
  paint(canvas, row);
  return canvas;
}

function thumb(row, words, bad) {
  const button = make("button", bad ? "thumb bad" : "thumb");
  button.type = "button";
  button.title = rows.names[row];
  button.dataset.row = row;
  button.append(picture(row, 74), make("small", "", words));
  button.addEventListener("click", () => { select(row, true); });
  return button;
}

// ----------------------------------------------------------------------------------------------------------- downloads

function csv(table) {
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [table.columns, ...table.rows].map((line) => line.map(cell).join(",") + "\n").join("");
}

function save(name, table) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const safe = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text); // or a spreadsheet would compute it

// ------------------------------------------------------------------------------------------------------------- colours

const SHAPES = 4;
const sequence = ["#9aa4ad", "#56B4E9", "#E69F00", "#D55E00"];
const modes = {};
if (rows.label) {
  const present = [...new Set(rows.label)].sort((a, b) => a - b);
  const apart = present.filter((l) => l >= 0).length <= data.colours.length * SHAPES;
  modes.class = {
    name: "class",
    entries: present.map((label, i) => ({
      key: label, name: label < 0 ? "no label" : className(label),
      colour: label < 0 ? "#9aa4ad" : data.colours[i % data.colours.length],
      shape: apart ? Math.floor(i / data.colours.length) % SHAPES : 0,
    })),
    of: (row) => rows.label[row],
  };
}
modes.split = {
  name: "split",
  entries: rows.splits.map((name, i) => ({ key: i, name, colour: data.colours[i % data.colours.length], shape: 0 })),
  of: (row) => rows.split[row],
};
const graded = (names) => names.map((name, i) => ({ key: i, name, colour: sequence[i], shape: 0 }));
if (rows.error) {
  modes.error = {
    name: "label error", entries: graded(["below 10 %", "10 to 50 %", "50 to 90 %", "above 90 %"]),
    of: (row) => { const p = rows.error[row] / 255; return p < 0.1 ? 0 : p < 0.5 ? 1 : p < 0.9 ? 2 : 3; },
  };
}
modes.outlier = {
  name: "outlier", entries: graded(["near others", "somewhat apart", "apart", "far from all"]),
  of: (row) => { const z = rows.outlier[row] / 100; return z < 1 ? 0 : z < 1.5 ? 1 : z < 2 ? 2 : 3; },
};
modes.group = {
  name: "near-duplicates", entries: [graded(["no copy"])[0], { key: 1, name: "copies", colour: "#D55E00", shape: 0 }],
  of: (row) => (rows.group[row] ? 1 : 0),
};

// ------------------------------------------------------------------------------------------------------------- the map

const place = root.querySelector(".map"), canvas = place.querySelector("canvas"), ink = canvas.getContext("2d");
const panel = root.querySelector(".panel"), legend = root.querySelector(".legend"), hint = root.querySelector(".hint");
const count = root.querySelector(".count"), find = root.querySelector(".find"), colour = root.querySelector(".colour");
let mode = rows.label ? "class" : "split", picked = null, found = null, chosen = -1, hovered = -1;
let view = { scale: 1, x: 0.5, y: 0.5 }; // what stands in the middle, in 0…1, and how much larger than everything
let order = [], kinds = new Uint16Array(n), width = 0, height = 0, asked = false;

const GRID = 128; // cells in which the nearest point is looked for
const cells = Array.from({ length: GRID * GRID }, () => []);
const px = new Float32Array(n), py = new Float32Array(n);
for (let row = 0; row < n; row++) {
  px[row] = rows.at[2 * row] / 65535;
  py[row] = 1 - rows.at[2 * row + 1] / 65535;
  cells[Math.min(GRID - 1, Math.floor(py[row] * GRID)) * GRID + Math.min(GRID - 1, Math.floor(px[row] * GRID))].push(row);
}

const unit = () => 0.92 * Math.min(width, height) * view.scale;
const toScreen = (x, y) => [(x - view.x) * unit() + width / 2, (y - view.y) * unit() + height / 2];
const radius = () => Math.max(1.2, Math.min(7, 60 / Math.sqrt(n) * 1.6 * Math.pow(view.scale, 0.4)));

function mark(x, y, r, shape) {
  ink.beginPath();
  if (shape === 0) ink.arc(x, y, r, 0, 7);
  else if (shape === 1) ink.rect(x - r * 0.9, y - r * 0.9, 1.8 * r, 1.8 * r);
  else if (shape === 2) { ink.moveTo(x, y - 1.2 * r); ink.lineTo(x + 1.15 * r, y + 0.9 * r); ink.lineTo(x - 1.15 * r, y + 0.9 * r); ink.closePath(); }
  else { ink.moveTo(x, y - 1.3 * r); ink.lineTo(x + 1.1 * r, y); ink.lineTo(x, y + 1.3 * r); ink.lineTo(x - 1.1 * r, y); ink.closePath(); }
}

function draw() {
  asked = false;
  const ratio = Math.min(2, devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.clearRect(0, 0, width, height);
  const u = unit(), left = width / 2 - view.x * u, top = height / 2 - view.y * u, r = radius();
  const entries = modes[mode].entries, faded = picked !== null || found;
  let drawn = 0;
  for (const strong of faded ? [false, true] : [true]) {
    ink.globalAlpha = strong ? 0.85 : 0.1;
    for (let e = 0; e < entries.length; e++) {
      const rowsOf = order[e], entry = entries[e];
      if (faded && !found && (picked === e) !== strong) continue;
      ink.fillStyle = entry.colour;
      for (let i = 0; i < rowsOf.length; i++) {
        const row = rowsOf[i];
        if (found && (found.has(row) && (picked === null || picked === e)) !== strong) continue;
        const x = px[row] * u + left, y = py[row] * u + top;
        if (x < -r || y < -r || x > width + r || y > height + r) continue;
        drawn++;
        if (r < 2.2) ink.fillRect(x - r, y - r, 2 * r, 2 * r);
        else { mark(x, y, r, entry.shape); ink.fill(); }
      }
    }
  }
  ink.globalAlpha = 1;
  const style = getComputedStyle(document.documentElement);
  const ring = (row, size, colour) => {
    const [x, y] = toScreen(px[row], py[row]);
    ink.lineWidth = 2;
    ink.strokeStyle = colour;
    mark(x, y, size, 0);
    ink.stroke();
  };
  if (chosen >= 0) {
    for (let j = 0; j < rows.k; j++) ring(rows.near[chosen * rows.k + j], r + 2.5, style.getPropertyValue("--soft"));
    ring(chosen, r + 5, style.getPropertyValue("--ink"));
  }
  if (hovered >= 0) ring(hovered, r + 3, style.getPropertyValue("--accent"));
  canvas.dataset.drawn = drawn;
}

const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };

function recolour() {
  const { entries, of } = modes[mode], number = new Map(entries.map((entry, i) => [entry.key, i]));
  order = entries.map(() => []);
  for (let row = 0; row < n; row++) {
    kinds[row] = number.get(of(row));
    order[kinds[row]].push(row);
  }
  legend.replaceChildren(...entries.map((entry, e) => {
    const button = make("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    const dot = make("canvas");
    dot.width = dot.height = 24;
    dot.style.width = dot.style.height = "12px";
    const own = dot.getContext("2d");
    own.fillStyle = entry.colour;
    own.scale(2, 2);
    own.beginPath();
    if (entry.shape === 1) own.rect(2, 2, 8, 8);
    else if (entry.shape === 2) { own.moveTo(6, 1); own.lineTo(11, 10); own.lineTo(1, 10); }
    else if (entry.shape === 3) { own.moveTo(6, 0); own.lineTo(11, 6); own.lineTo(6, 12); own.lineTo(1, 6); }
    else own.arc(6, 6, 4.5, 0, 7);
    own.fill();
    button.append(dot, make("span", "", entry.name), make("small", "", order[e].length.toLocaleString("en")));
    button.addEventListener("click", () => {
      picked = picked === e ? null : e;
      [...legend.children].forEach((other, o) => { other.setAttribute("aria-pressed", String(o === picked)); });
      redraw();
    });
    return button;
  }));
  picked = null;
  redraw();
}

function nearest(x, y) {
  const reach = 12, u = unit();
  const cx = (x - width / 2) / u + view.x, cy = (y - height / 2) / u + view.y, d = reach / u;
  const low = (v) => Math.max(0, Math.floor((v - d) * GRID)), high = (v) => Math.min(GRID - 1, Math.floor((v + d) * GRID));
  let best = -1, least = d * d;
  for (let j = low(cy); j <= high(cy); j++) {
    for (let i = low(cx); i <= high(cx); i++) {
      for (const row of cells[j * GRID + i]) {
        if (picked !== null && kinds[row] !== picked) continue;
        if (found && !found.has(row)) continue;
        const distance = (px[row] - cx) ** 2 + (py[row] - cy) ** 2;
        if (distance < least) { least = distance; best = row; }
      }
    }
  }
  return best;
}

function zoom(by, x = width / 2, y = height / 2) {
  if (!by) view = { scale: 1, x: 0.5, y: 0.5 };
  else {
    const u = unit(), cx = (x - width / 2) / u + view.x, cy = (y - height / 2) / u + view.y;
    view.scale = Math.max(0.5, Math.min(400, view.scale * by));
    const v = unit();
    view.x = cx - (x - width / 2) / v;
    view.y = cy - (y - height / 2) / v;
  }
  redraw();
}

const tip = make("div");
tip.id = "explore-tip";
document.body.append(tip);

function show(row, x, y) {
  if (row !== hovered) {
    hovered = row;
    canvas.style.cursor = row < 0 ? "" : "pointer";
    redraw();
    if (row >= 0) {
      const words = [rows.splits[rows.split[row]]];
      if (rows.label && rows.label[row] >= 0) words.unshift(className(rows.label[row]));
      tip.replaceChildren(...(pictures ? [picture(row, 128)] : []), make("strong", "", rows.names[row]), make("div", "", words.join(" · ")));
    }
  }
  tip.style.display = row < 0 ? "none" : "block";
  if (row >= 0) {
    tip.style.left = `${Math.max(4, Math.min(innerWidth - tip.offsetWidth - 8, x + 16))}px`;
    tip.style.top = `${Math.max(4, Math.min(innerHeight - tip.offsetHeight - 8, y + 12))}px`;
  }
}

const fingers = new Map();
let moved = 0;
const inside = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, inside(event));
  moved = 0;
});
canvas.addEventListener("pointermove", (event) => {
  const [x, y] = inside(event), before = fingers.get(event.pointerId);
  if (!before) { show(nearest(x, y), event.clientX, event.clientY); return; }
  const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
  if (other) {
    const ratio = Math.hypot(x - other[0], y - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1]));
    zoom(ratio, (x + other[0]) / 2, (y + other[1]) / 2);
  } else {
    view.x -= (x - before[0]) / unit();
    view.y -= (y - before[1]) / unit();
  }
  moved += Math.hypot(x - before[0], y - before[1]);
  fingers.set(event.pointerId, [x, y]);
  if (moved > 4) { canvas.classList.add("dragging"); show(-1); }
  redraw();
});
const up = (event) => {
  if (fingers.delete(event.pointerId) && event.type === "pointerup" && moved <= 4) {
    const row = nearest(...inside(event));
    if (row >= 0) select(row);
  }
  canvas.classList.remove("dragging");
};
canvas.addEventListener("pointerup", up);
canvas.addEventListener("pointercancel", up);
canvas.addEventListener("pointerleave", () => { show(-1); });
canvas.addEventListener("wheel", (event) => {
  // A wheel that scrolls the page goes on scrolling it: the map takes it once it was clicked, or with Ctrl.
  if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...inside(event));
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const step = 40 / unit(), keys = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
  if (keys[event.key]) { view.x += keys[event.key][0]; view.y += keys[event.key][1]; redraw(); }
  else if (event.key === "+" || event.key === "=") zoom(1.6);
  else if (event.key === "-") zoom(0.625);
  else if (event.key === "Escape") select(-1);
  else return;
  event.preventDefault();
});
root.querySelectorAll(".zoom button").forEach((button) => {
  button.addEventListener("click", () => { zoom(Number(button.dataset.by)); });
});

// --------------------------------------------------------------------------------------------------- search by example

function select(row, scroll) {
  chosen = row;
  redraw();
  if (row < 0) {
    panel.replaceChildren(make("p", "note", "Click a point, or a picture anywhere on this page: its nearest neighbours stand here."));
    return;
  }
  const list = make("dl"), line = (term, text) => { list.append(make("dt", "", term), make("dd", "", text)); };
  line("split", rows.splits[rows.split[row]]);
  const own = rows.label ? rows.label[row] : -1;
  if (rows.label) line("label", own < 0 ? "none" : className(own));
  if (rows.error && own >= 0) {
    line("label error", `${Math.round(rows.error[row] / 2.55)} %`);
    if (rows.suggested[row] !== own) line("looks like", className(rows.suggested[row]));
  }
  line("outlier", (rows.outlier[row] / 100).toFixed(1));
  if (rows.group[row]) line("copies", `group ${rows.group[row]}`);
  const near = Array.from({ length: rows.k }, (_, j) => [rows.near[row * rows.k + j], rows.cosine[row * rows.k + j] / 255]);
  const button = make("button", "", "CSV");
  button.type = "button";
  button.addEventListener("click", () => {
    save("neighbours.csv", {
      columns: ["name", "neighbour", "cosine"],
      rows: near.map(([other, cosine]) => [safe(rows.names[row]), safe(rows.names[other]), cosine.toFixed(2)]),
    });
  });
  const top = make("div", "row");
  top.append(make("strong", "", "Nearest neighbours"), button);
  const thumbs = make("div", "thumbs");
  thumbs.append(...near.map(([other, cosine]) => {
    const label = rows.label ? rows.label[other] : -1;
    const words = [cosine.toFixed(2), label >= 0 ? className(label) : ""].filter(Boolean).join(" · ");
    return thumb(other, words, own >= 0 && label >= 0 && label !== own);
  }));
  panel.replaceChildren(...(pictures ? [picture(row, 160)] : []), make("h3", "", rows.names[row]), list, top, thumbs);
  if (pictures) panel.firstChild.style.cssText = "width: 10rem; height: 10rem; border-radius: 8px; background: var(--fill)";
  panel.dataset.row = row;
  panel.scrollTop = 0;
  if (scroll) root.scrollIntoView({ block: "start" });
}

find.addEventListener("input", () => {
  const text = find.value.trim().toLowerCase();
  found = null;
  if (text) {
    found = new Set();
    for (let row = 0; row < n; row++) if (rows.names[row].toLowerCase().includes(text)) found.add(row);
  }
  count.textContent = found ? `${found.size.toLocaleString("en")} of ${n.toLocaleString("en")}` : "";
  redraw();
});
find.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && found && found.size) { event.preventDefault(); select(found.values().next().value); }
});

colour.replaceChildren(...Object.entries(modes).map(([key, { name }]) => {
  const option = make("option", "", name);
  option.value = key;
  return option;
}));
colour.value = mode;
colour.addEventListener("change", () => { mode = colour.value; recolour(); });
hint.textContent = matchMedia("(pointer: coarse)").matches ? "drag, pinch, tap" : "drag to move · Ctrl + wheel to zoom · click to search";

new ResizeObserver(() => {
  width = place.clientWidth;
  height = place.clientHeight;
  redraw();
}).observe(place);
new MutationObserver(redraw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
width = place.clientWidth;
height = place.clientHeight;
recolour();
select(-1);
kontrast.explore = { rows, className, make, thumb, save };
