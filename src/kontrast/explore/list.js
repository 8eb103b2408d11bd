// A list below the map: copies, label errors, outliers, or overlapping classes. It shows some, and more when asked.

const { rows, className, make, thumb, save } = kontrast.explore;
const list = root.querySelector(".list"), ol = list.querySelector("ol"), more = list.querySelector(".more");
const only = list.querySelector(".only"), box = only.querySelector("input");
const STEP = data.kind === "cards" ? 48 : 20;
list.classList.add(data.kind);
list.querySelector(".said").textContent = data.said;
if (data.only) {
  only.hidden = false;
  only.querySelector("span").textContent = data.only;
}
list.querySelector(".csv").addEventListener("click", () => { save(data.file, data.table); });

const label = (row) => (rows.label && rows.label[row] >= 0 ? className(rows.label[row]) : "");
const file = (row) => rows.names[row].slice(rows.names[row].lastIndexOf("/") + 1);
const split = (row) => { // rows that are no files are called by their split
  const name = rows.splits[rows.split[row]];
  return rows.names[row].startsWith(name) ? "" : name;
};

function item(entry) {
  const line = make("li"), words = make("div", "words");
  if (entry.marks) entry.marks.forEach((mark) => { words.append(make("span", "mark", mark)); });
  if (entry.strong) words.append(make("strong", "", entry.strong));
  if (entry.text) words.append(make(data.kind === "cards" ? "div" : "span", "", entry.text));
  if (data.kind === "cards") {
    words.append(make("small", "", [split(entry.rows[0]), rows.names[entry.rows[0]]].filter(Boolean).join(" · ")));
    line.append(thumb(entry.rows[0], ""), words);
  } else {
    const thumbs = make("div", "thumbs");
    thumbs.append(...entry.rows.map((row) => thumb(row, [label(row), split(row), file(row)].filter(Boolean).join(" · "))));
    if (entry.rows.length > 3) line.className = "large";
    line.append(words, thumbs);
  }
  return line;
}

let shown = 0, entries = [];
function add() {
  ol.append(...entries.slice(shown, shown + STEP).map(item));
  shown = Math.min(entries.length, shown + STEP);
  more.hidden = shown >= entries.length;
  more.textContent = `Show more (${(entries.length - shown).toLocaleString("en")} left)`;
}
function fill() {
  entries = box.checked ? data.entries.filter((entry) => entry.marked) : data.entries;
  ol.replaceChildren();
  shown = 0;
  add();
}
more.addEventListener("click", add);
box.addEventListener("change", fill);
fill();
