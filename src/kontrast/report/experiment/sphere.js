// Points on a sphere: drag, touch or arrow keys turn it, the slider and the play button move time.
// `root` holds the markup of sphere.html, `data` what kontrast.report.experiment.sphere.record gives.
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"];
const START = { yaw: -0.5, pitch: 0.3 };
const SECONDS = 7; // a whole play
const svg = root.querySelector("svg.globe");
const slider = root.querySelector("input[type=range]");
const button = root.querySelector("button.play");
const chooser = root.querySelector("select");
const told = root.querySelector("output");
const course = root.querySelector("svg.course");
const still = matchMedia("(prefers-reduced-motion: reduce)");
let { yaw, pitch } = START;
let setting = null;
let time = 0; // in frames, with a fraction while playing
let playing = 0; // the animation's handle

function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 2 }, (_, i) => (view.getInt16(2 * i, true) / 32767) * data.limit);
}

function element(parent, name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function turned(x, y, z) {
  const [c, s, p, q] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  const [u, w] = [c * x + s * z, c * z - s * x];
  return [u, -(p * y - q * w), p * w + q * y]; // right, down (as SVG has it), towards the eye
}

// The triples of a frame between two kept ones.
function frame(all, count, t) {
  const from = Math.min(Math.floor(t), setting.steps.length - 1);
  const to = Math.min(from + 1, setting.steps.length - 1);
  const share = t - from;
  return Array.from({ length: count }, (_, i) =>
    [0, 1, 2].map((c) => {
      const [a, b] = [all[(from * count + i) * 3 + c], all[(to * count + i) * 3 + c]];
      return a + share * (b - a);
    }));
}

const at = ([x, y]) => `${x.toFixed(4)} ${y.toFixed(4)}`;
const dots = (places) => places.map((place) => `M${at(place)}h0`).join("");

function ring(point) { // a great circle, its near and its far half
  const halves = ["", ""];
  let before = -1;
  for (let i = 0; i <= 96; i += 1) {
    const place = turned(...point((i / 96) * 2 * Math.PI));
    const side = place[2] >= 0 ? 1 : 0;
    halves[side] += `${side === before ? "L" : "M"}${at(place)}`;
    before = side;
  }
  return halves;
}

function draw() {
  const n = setting.labels.length;
  const places = frame(setting.points, n, time).map((p) => turned(...p));
  const sums = Array.from({ length: setting.classes }, () => [0, 0, 0, 0]);
  places.forEach((p, i) => {
    const sum = sums[setting.labels[i]];
    p.forEach((value, c) => { sum[c] += value; });
    sum[3] += 1;
  });
  const means = sums.map(([x, y, z, count]) => [x / count, y / count, z / count]);
  const tips = setting.weights ? frame(setting.weights, setting.classes, time).map((p) => turned(...p)) : [];
  const best = (setting.optimum || []).map((p) => turned(...p));
  for (const side of ["far", "near"]) {
    const group = svg.querySelector(`.${side}`);
    group.replaceChildren();
    const here = (p) => (p[2] >= 0) === (side === "near");
    const rings = [(a) => [Math.cos(a), 0, Math.sin(a)], (a) => [Math.cos(a), Math.sin(a), 0],
      (a) => [0, Math.cos(a), Math.sin(a)]].map((line) => ring(line)[side === "near" ? 1 : 0]);
    element(group, "path", { class: "ring", d: rings.join("") });
    best.forEach((p, k) => here(p) && element(group, "path", { class: "best", stroke: COLOURS[k], d: `M0 0L${at(p)}` }));
    for (let k = 0; k < setting.classes; k += 1) {
      const mine = places.filter((p, i) => setting.labels[i] === k && here(p));
      element(group, "path", { class: "points", "data-class": k, stroke: COLOURS[k], d: dots(mine) });
    }
    tips.forEach((p, k) => here(p)
      && element(group, "path", { class: "weight", stroke: COLOURS[k], d: `M0 0L${at(p)}m-.03 -.03h.06v.06h-.06z` }));
    best.forEach((p, k) => here(p) && element(group, "path", {
      class: "diamond", stroke: COLOURS[k], d: `M${at([p[0], p[1] - 0.1])}l.1 .1l-.1 .1l-.1 -.1z` }));
    means.forEach((p, k) => {
      if (!here(p)) return;
      element(group, "circle", { class: "mean", cx: p[0].toFixed(4), cy: p[1].toFixed(4), r: 0.055, fill: COLOURS[k] });
      element(group, "text", { x: p[0].toFixed(4), y: (p[1] + 0.026).toFixed(4) }, String(k + 1));
    });
  }
  tell();
}

function tell() {
  const i = Math.round(time);
  const above = setting.values[i] - setting.bounds[i];
  const [step, value, bound] = [setting.steps[i], setting.values[i].toFixed(5), setting.bounds[i].toFixed(5)];
  told.textContent = `step ${step} · loss ${value} · bound ${bound} · above it ${above.toExponential(1)}`;
  slider.setAttribute("aria-valuetext", `step ${step}, loss ${value}`);
  const cursor = course.querySelector(".cursor");
  cursor.setAttribute("cx", across(setting.steps[i]));
  cursor.setAttribute("cy", up(above));
}

// The loss above its bound, over the steps: powers of ten from 10 down to 10^-8.
const [LEFT, WIDE, TOP, HIGH, DECADES] = [42, 250, 10, 100, 9];
const across = (step) => (LEFT + (WIDE * step) / Math.max(setting.steps.at(-1), 1)).toFixed(1);
const up = (above) => (TOP + (HIGH * Math.min(1 - Math.log10(Math.max(above, 1e-12)), DECADES)) / DECADES).toFixed(1);

function drawCourse() {
  course.replaceChildren();
  for (const power of [0, -2, -4, -6, -8]) {
    const y = up(10 ** power);
    element(course, "path", { class: "grid", d: `M${LEFT} ${y}h${WIDE}` });
    element(course, "text", { x: LEFT - 6, y: Number(y) + 3.5, "text-anchor": "end" }, power ? `10${raised(power)}` : "1");
  }
  element(course, "text", { x: LEFT, y: TOP + HIGH + 16 }, "step 0");
  element(course, "text", { x: LEFT + WIDE, y: TOP + HIGH + 16, "text-anchor": "end" }, String(setting.steps.at(-1)));
  const line = setting.values.map((value, i) => `${across(setting.steps[i])} ${up(value - setting.bounds[i])}`);
  element(course, "path", { class: "line", d: `M${line.join("L")}` });
  element(course, "circle", { class: "cursor", r: 4 });
}

const raised = (power) => [...String(power)].map((sign) => ({ "-": "⁻", 2: "²", 4: "⁴", 6: "⁶", 8: "⁸" })[sign]).join("");

function choose(index) {
  const given = data.settings[index];
  setting = { ...given, points: unpack(given.points), weights: given.weights && unpack(given.weights) };
  slider.max = setting.steps.length - 1;
  root.querySelector(".with-weights").hidden = !setting.weights;
  root.querySelector(".with-best").hidden = !setting.optimum;
  root.querySelectorAll(".classes span").forEach((chip, k) => { chip.hidden = k >= setting.classes; });
  drawCourse();
  move(0);
}

function move(to) {
  time = Math.max(0, Math.min(to, setting.steps.length - 1));
  slider.value = Math.round(time);
  draw();
}

function stop() {
  cancelAnimationFrame(playing);
  clearTimeout(playing);
  playing = 0;
  button.textContent = "▶ play";
}

function play() {
  const last = setting.steps.length - 1;
  if (time >= last) move(0);
  button.textContent = "❚❚ pause";
  let before = performance.now();
  const next = (now) => {
    if (still.matches) move(Math.floor(time) + 1); // no gliding, no turning: a frame at a time
    else {
      const passed = Math.min((now - before) / 1000, 0.1);
      yaw += 0.12 * passed;
      move(time + (passed * last) / SECONDS);
    }
    before = now;
    if (time >= last) stop();
    else playing = still.matches ? setTimeout(() => next(performance.now()), 400) : requestAnimationFrame(next);
  };
  playing = requestAnimationFrame(next);
}

button.addEventListener("click", () => (playing ? stop() : play()));
slider.addEventListener("input", () => { stop(); move(Number(slider.value)); });
chooser.addEventListener("change", () => { stop(); choose(Number(chooser.value)); });

function turn(right, down) {
  yaw += right;
  pitch = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, pitch + down));
  draw();
}

let held = null;
svg.addEventListener("pointerdown", (event) => {
  held = [event.clientX, event.clientY];
  svg.setPointerCapture(event.pointerId);
});
svg.addEventListener("pointermove", (event) => {
  if (!held) return;
  const unit = 2.5 / svg.clientWidth; // a drag over the radius is about a radian
  turn((event.clientX - held[0]) * unit, (event.clientY - held[1]) * unit);
  held = [event.clientX, event.clientY];
});
for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { held = null; });
svg.addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
  if (event.key === "Home") ({ yaw, pitch } = START);
  else if (!steps) return;
  event.preventDefault();
  turn(...(steps || [0, 0]));
});
addEventListener("beforeprint", () => { stop(); move(setting.steps.length - 1); });

data.settings.forEach((one, index) => {
  const option = document.createElement("option");
  option.value = index;
  option.textContent = one.name;
  chooser.append(option);
});
svg.replaceChildren(...svg.querySelectorAll(".ball"));
for (const side of ["far", "near"]) element(svg, "g", { class: side });
root.querySelectorAll("[hidden].live").forEach((part) => { part.hidden = false; });
choose(0);
