"use strict";
// What stands behind the page: the parts below draw what `data` holds (common/show/page.py says what
// that is), each into its section, and again when something else is chosen.

const data = JSON.parse(document.getElementById("data").textContent);
const LANES = 32, SECTOR = 32, BANKS = 32, WORD = 4, LINE = 128;  // bytes; number of banks
const SOURCE_CONFLICT = 2;  // of a wavefront: common/measure/trace_file.h
const OPENS_ON = ["01_naive", "04_register_blocking"];  // where a page for nothing special begins: side by side
const state = {problem: 0, profile: 0, metric: "", stage: "", panels: [{}, {}]};

// ---- Elements ----

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return element;
}
const h = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const body = id => document.querySelector(`#${id} .body`);

// A labelled list to choose from; `options`: [value, text].
function choice(id, label, options, value, changed) {
  const select = h("select", {id, onchange: event => changed(event.target.value)},
    options.map(([own, text]) => h("option", {value: own, selected: String(own) === String(value)}, text)));
  return h("label", {for: id}, label + " ", select);
}

// What is missing for a part, and which command makes it.
const notices = about => data.notices.filter(notice => notice.about === about).map(notice =>
  h("p", {class: "notice"}, notice.text, " ", h("code", {}, notice.command), " makes it."));

// Draws anew, and gives the focus back to what had it.
function redraw(...parts) {
  const id = document.activeElement && document.activeElement.id;
  for (const part of parts) part();
  if (id && document.getElementById(id)) document.getElementById(id).focus({preventScroll: true});
}

// ---- Numbers ----

const whole = value => Math.round(value).toLocaleString("en-US");
const percent = share => (100 * share).toFixed(1) + " %";
const plural = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
const short = stage => stage.replace(/_.*/, "");
const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

const FLOOR = "at least [ms]";  // a column: what a stage can't be faster than, by its counts
const problem = () => data.problems[state.problem];
const profile = () => problem() && problem().profiles[state.profile];
// {heading, cells: {stage: [value, as the tables have it, ÷ that of the stage before]}}
const columns = () => problem() ? [...problem().columns, ...profile() ? profile().columns : []] : [];
const stages = () => problem() ? problem().stages : data.trace ? data.trace.stages.map(s => s.stage) : [];

function choose(stage) {
  state.stage = stage;
  if (traced(stage)) {
    const before = stage + ", before";  // as it was before its last change, which --show has kept
    state.panels = [{stage}, traced(before) ? {stage: before} : state.panels[1]];
  }
  redraw(ladder, neighbours, warp, roofline, traffic);
}

// ---- The ladder ----

function ladder() {
  const parts = [...notices("bench"), ...notices("profile")];
  if (problem()) parts.push(...stageRows());
  body("ladder").replaceChildren(...parts);
}

function stageRows() {
  const timed = problem().columns[0], names = columns().map(column => column.heading);
  if (!names.includes(state.metric)) {
    const first = [...timed ? [timed.heading] : [], FLOOR, "L1", "requests"];
    state.metric = first.find(name => names.includes(name)) || names[0];
  }
  const {cells} = columns().find(column => column.heading === state.metric);
  const known = Object.values(cells), rivals = timed && state.metric === timed.heading ? problem().rivals.filter(rival => rival.ms) : [];
  const values = [...known.map(([value]) => value), ...rivals.map(rival => rival.ms)].filter(value => value > 0);
  const least = Math.log(Math.min(...values) / 1.3), most = Math.log(Math.max(...values) * 1.1);
  const place = value => 100 * clamp((Math.log(value) - least) / (most - least), 0, 1);
  let before = null;
  const rows = stages().map(stage => {
    const [value, text, factor] = cells[stage] || [null, "not measured", ""];
    const from = factor && value > 0 ? place(before) : null, to = value > 0 ? place(value) : null;
    if (value > 0) before = value;
    return h("button", {class: "stage", id: "stage-" + stage, "aria-pressed": String(stage === state.stage),
                        onclick: () => choose(stage)},
      h("span", {class: "name"}, stage),
      h("span", {class: "track"},
        from === null ? null : h("span", {class: to <= from ? "bar less" : "bar more",
          style: `left:${Math.min(from, to)}%;width:${Math.abs(from - to)}%`}),
        to === null ? null : h("span", {class: "dot", style: `left:${to}%`})),
      h("span", {class: "value"}, text, " ", h("span", {class: "small"}, factor ? "× " + factor : "",
        state.metric === FLOOR && limit(stage) ? " · " + limit(stage) : "")));
  });
  const others = rivals.map(rival => h("div", {class: "stage rival"}, h("span", {class: "name"}, rival.title),
    h("span", {class: "track"}, h("span", {class: "dot hollow", style: `left:${place(rival.ms)}%`})),
    h("span", {class: "value"}, rival.text)));
  return [
    choice("metric", "Figure", names.map(name => [name, name]), state.metric, value => { state.metric = value; redraw(ladder); }),
    h("p", {class: "small"}, "Logarithmic. The bar, and the figure behind ×, are the step from the stage before: ",
      h("span", {class: "key less"}), " less, ", h("span", {class: "key more"}), " more. Figures with a * leave out a library's kernels, which that source doesn't count."),
    h("div", {class: "stages"}, rows, others), details()];
}

// By what the stage's floor is set; "" where no counts say.
const limit = stage => profile() && profile().floors[stage] || "";

// What is known of the chosen stage, and what its warps wait for.
function details() {
  const time = problem().times[state.stage];
  const lines = [];
  if (time && time.ms) {
    lines.push(`${time.text} ms with a cold L2 (quartiles ${time.quartiles}): ${time.tflops} TFLOP/s` +
               (time.ceiling ? `, ${time.ceiling} of the FP32 ceiling.` : "."));
  }
  const floor = (columns().find(column => column.heading === FLOOR) || {cells: {}}).cells[state.stage];
  if (floor) lines.push(`By its counts it takes ${floor[1]} ms at the least, if only ${limit(state.stage)} held it up.`);
  const waits = columns().filter(column => column.heading.startsWith("stalled: ") && (column.cells[state.stage] || [0])[0] > 0)
    .map(column => [column.heading.slice(9), ...column.cells[state.stage]])
    .sort((one, other) => other[1] - one[1]);
  if (waits.length) {
    const names = {global: "global memory", "shared queue": "the queue to shared memory",
                   barrier: "other warps at a barrier"};
    lines.push("A warp waits for " + waits.map(([what, , text], i) =>
      `${i === 0 ? "" : i === waits.length - 1 ? " and " : ", "}${names[what] || what} (${text})`).join("") +
      ", in cycles from one instruction to its next.");
  }
  if (!lines.length) lines.push("How long it takes and what its warps wait for, a GPU tells: there is neither here.");
  const verdict = data.limits[state.stage];
  if (verdict) lines.push(`What limits it with 256 images of AlexNet's layer, by its lesson: ${verdict}.`);
  return h("div", {class: "card", id: "details"}, h("h3", {}, state.stage), lines.map(line => h("p", {}, line)));
}

// ---- Two neighbours ----

function neighbours() {
  const order = stages(), at = order.indexOf(state.stage), before = order[at - 1];
  if (!order.length) return body("neighbours").replaceChildren(...notices("profile"));
  if (!before) {
    return body("neighbours").replaceChildren(
      h("p", {}, `${state.stage} is the first stage here: choose another to see what it changed.`));
  }
  const rows = columns().filter(({cells}) => cells[before] || cells[state.stage]).map(({heading, cells}) => {
    const [old, now] = [cells[before], cells[state.stage]];
    return [heading, old ? old[1] : "", now ? now[1] : "", old && now ? now[2] : ""];
  });
  const table = h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "counters"}, h("table", {id: "steps"},
    h("tr", {}, ["", before, state.stage, "÷ before"].map(name => h("th", {scope: "col"}, name.split("_").flatMap((part, i) => i ? [h("wbr"), "_" + part] : part)))),
    rows.map(([heading, ...cells]) => h("tr", {}, h("th", {scope: "row"}, heading), cells.map(cell => h("td", {}, cell))))));
  body("neighbours").replaceChildren(h("div", {class: "pair"},
    h("div", {}, h("h3", {}, "Counters"), rows.length ? table : notices("profile")),
    h("div", {}, h("h3", {}, `Code: ${before} → ${state.stage}`), difference(before, state.stage))));
}

function difference(before, now) {
  const change = data.changes[now];
  if (!change || change.before !== before) return h("p", {}, "The code of both isn't in this page.");
  return h("pre", {class: "code", tabindex: 0, "aria-label": "difference of the code"},
    change.lines.map(([kind, line]) => h("span", {class: kind}, line + "\n")));
}

// ---- What a warp asks for, as the simulator has counted it ----

const runLength = instruction => instruction.operation === "copy" ? 8 : 5;

function executions(instruction, runs) {
  let count = 0;
  for (let at = 0; at < runs.length; at += runLength(instruction)) count += runs[at];
  return count;
}

// The i-th time that the warp executes the instruction: address, per lane, or null; of a copy its other
// end, source or destination: null where zeros are written; and the sectors or wavefronts: {lanes, kind}.
function access({patterns, services}, instruction, runs, i) {
  let at = 0;
  for (; i >= runs[at]; at += runLength(instruction)) i -= runs[at];
  const [, served, ...sides] = runs.slice(at, at + runLength(instruction)), list = services[served];
  const [address, otherEnd] = [sides.slice(0, 3), sides.slice(3)].map(([pattern, begin, step]) =>
    pattern === undefined ? null : patterns[pattern].map(number => number === null ? null : begin + i * step + number));
  return {...instruction, address, otherEnd, services: list.flatMap((mask, n) => n % 2 ? [] :
    [{lanes: address.map((_, lane) => lane).filter(lane => mask >>> lane & 1), kind: list[n + 1]}])};
}

const active = address => [...address.keys()].filter(lane => address[lane] !== null);
const wordsOf = (address, bytes) =>
  Array.from({length: Math.ceil(bytes / WORD)}, (_, i) => Math.floor(address / WORD) + i);

// ---- A warp, line by line ----

const traced = stage => data.trace && data.trace.stages.find(one => one.stage === stage);
const fileOf = instruction => instruction.line.replace(/:\d+$/, "");
const lineOf = instruction => Number(instruction.line.match(/\d+$/));
const unitOf = instruction => instruction.space === "shared" ? "wavefront" : "sector";
const share = (kernel, instruction) => instruction.cost / kernel.instructions
  .filter(other => other.space === instruction.space).reduce((sum, other) => sum + other.cost, 0);
const nameOf = ({operation, bytes, space, memory}) =>
  `${operation} of ${bytes} bytes, ${space} ${memory}${operation === "copy" && space === "shared" ? " (where it arrives)" : ""}`;

function warp() {
  const parts = notices("trace");
  if (data.trace) {
    const names = data.trace.stages.map(one => one.stage);
    if (!names.length) return body("warp").replaceChildren(h("p", {class: "notice"}, "The trace has no stage in it."));
    if (!names.includes(state.panels[0].stage)) state.panels[0] = {stage: names[names.length - 1]};
    if (state.stage && !names.includes(state.stage)) {
      parts.push(h("p", {class: "notice"}, `No trace of ${state.stage} is in this page: below is ${state.panels[0].stage}.`));
    }
    const {problem, shape, left_out} = data.trace;
    parts.push(h("p", {class: "small"}, `${problem}: ${shape}; traced in the counting simulator. Click a line that touches ` +
      "memory. Counts are of the whole kernel; addresses are of a sample of its warps: of three blocks and three warps in each, at most" +
      (left_out ? `; ${plural(left_out, "warp")} of the sample had no room here.` : ".")));
    parts.push(h("div", {class: "controls"},
      choice("stage-0", "Kernel of", names.map(name => [name, name]), state.panels[0].stage,
             stage => { state.panels[0] = {stage}; redraw(warp); }),
      choice("stage-1", "beside", [["", "nothing"], ...names.map(name => [name, name])], state.panels[1].stage || "",
             stage => { state.panels[1] = {stage}; redraw(warp); })));
    parts.push(h("div", {class: "panels"}, state.panels.map((own, n) => own.stage ? panel(own, n) : null)));
  }
  body("warp").replaceChildren(...parts);
  state.panels.forEach((own, n) => {
    if (!data.trace || !own.stage) return;
    const source = document.getElementById(`source-${n}`), line = source.querySelector("[aria-pressed=true]");
    source.scrollTop = own.scroll === undefined && line ? line.offsetTop - source.clientHeight / 2 : own.scroll || 0;
    figure(own, n);
  });
}

// The choices of a panel, made good where they are missing.
function settle(own) {
  const stage = traced(own.stage);
  const heaviest = (list, weight) => list.indexOf(list.reduce((best, one) => weight(one) > weight(best) ? one : best, list[0]));
  const all = kernel => kernel.instructions.reduce((sum, instruction) => sum + instruction.cost, 0);
  if (own.kernel === undefined) own.kernel = heaviest(stage.kernels, all);
  const kernel = stage.kernels[own.kernel];
  if (own.instruction === undefined) own.instruction = heaviest(kernel.instructions, one => one.cost);
  own.warp = Math.min(own.warp || 0, kernel.warps.length - 1);
  return {stage, kernel, instruction: kernel.instructions[own.instruction], sample: kernel.warps[own.warp]};
}

function panel(own, n) {
  const {stage, kernel, instruction, sample} = settle(own);
  const again = changes => { Object.assign(own, changes); redraw(warp); };
  const file = fileOf(instruction), line = lineOf(instruction);
  const here = kernel.instructions.map((one, i) => [i, one]).filter(([, one]) => fileOf(one) === file);
  const source = (stage.files[file] || `${file} isn't in the trace`).replace(/\n$/, "").split("\n").map((text, i) => {
    const on = here.filter(([, one]) => lineOf(one) === i + 1);
    const number = h("span", {class: "number"}, String(i + 1));
    if (!on.length) return h("div", {class: "line"}, number, text || " ");
    const badges = ["global", "shared"].map(space => on.map(([, one]) => one).filter(one => one.space === space)).filter(some => some.length)
      .map(some => h("span", {}, percent(some.reduce((sum, one) => sum + share(kernel, one), 0)), h("span", {class: "long"}, ` of ${unitOf(some[0])}s`)));
    return h("button", {class: "line", id: `line-${n}-${i + 1}`, "aria-pressed": String(i + 1 === line),
                        onclick: () => again({instruction: on[0][0], i: 0})}, number, text, h("span", {class: "badge"}, badges));
  });
  const chosen = here.filter(([, one]) => lineOf(one) === line);
  const blocks = [...new Set(kernel.warps.map(one => one.block))];
  const count = sample ? executions(instruction, sample.runs[own.instruction]) : 0;
  own.i = clamp(own.i || 0, 0, Math.max(count - 1, 0));
  const pick = (block, number) => again({warp: Math.max(kernel.warps.findIndex(one => one.block === block &&
    (number === undefined || one.warp === number)), 0)});
  return h("article", {class: "panel"}, h("h3", {}, `${own.stage} · ${kernel.kernel}`),
    choice(`kernel-${n}`, "Kernel", stage.kernels.map((one, i) => [i, one.kernel]), own.kernel,
           value => again({kernel: Number(value), instruction: undefined, i: 0, scroll: undefined})),
    h("div", {class: "code source", id: `source-${n}`, onscroll: event => { own.scroll = event.target.scrollTop; }}, source),
    chosen.length > 1 ? choice(`instruction-${n}`, "Instruction", chosen.map(([i, one]) => [i, nameOf(one)]), own.instruction,
      value => again({instruction: Number(value), i: 0})) : null,
    h("p", {id: `counts-${n}`}, h("b", {}, `Line ${line}: ${nameOf(instruction)}. `),
      `Over the whole kernel: ${plural(instruction.requests, "request")}, ${plural(instruction.cost, unitOf(instruction))} ` +
      `(${percent(share(kernel, instruction))} of the kernel's), ${(instruction.cost / instruction.requests).toFixed(2)} per request` +
      (instruction.space === "shared" ? `, ${plural(instruction.conflicts, "bank conflict")}.`
        : `; ${percent(instruction.unique_bytes / (SECTOR * instruction.cost))} of the bytes in these sectors are used.`)),
    sample ? h("div", {class: "controls"},
      choice(`block-${n}`, "Block", blocks.map(block => [block, `${block} of ${kernel.grid.reduce((a, b) => a * b)}`]), sample.block,
             value => pick(Number(value), sample.warp)),
      choice(`warp-${n}`, "Warp", kernel.warps.filter(one => one.block === sample.block).map(one => [one.warp, one.warp]), sample.warp,
             value => pick(sample.block, Number(value))),
      h("label", {for: `iteration-${n}`, class: "wide"}, h("span", {id: `time-${n}`}),
        h("input", {type: "range", id: `iteration-${n}`, min: 0, max: Math.max(count - 1, 0), value: own.i, disabled: count < 2,
                    oninput: event => { own.i = Number(event.target.value); figure(own, n); }}))) : null,
    h("div", {class: "figure", id: `figure-${n}`}));
}

function figure(own, n) {
  const {stage, kernel, instruction, sample} = settle(own);
  const place = document.getElementById(`figure-${n}`);
  const count = sample ? executions(instruction, sample.runs[own.instruction]) : 0;
  if (!count) {
    document.getElementById(`time-${n}`)?.replaceChildren("Time: never");
    place.replaceChildren(h("p", {class: "notice"}, !sample ? "No warp of this kernel is in this page."
      : sample.cut.includes(own.instruction) ? "What this warp does there had no room in the trace: trace it alone, with --block and --warp."
      : `This warp never comes to line ${lineOf(instruction)}: choose another block or warp.`));
    return;
  }
  document.getElementById(`time-${n}`).textContent =
    `Time ${own.i + 1} of ${count}${sample.cut.includes(own.instruction) ? " kept (there are more)" : ""} `;
  const one = access(stage, instruction, sample.runs[own.instruction], own.i);
  const memory = instruction.space === "shared" ? kernel.shared : stage.memory;
  const tell = lane => one.address[lane] === null ? `lane ${lane} takes no part` : `lane ${lane}: ${placeOf(one.address[lane], memory)}` +
    (one.otherEnd && one.otherEnd[lane] === null ? ", filled with zeros" : "");
  const space = Math.max(place.clientWidth, 280);  // none while the page is not on show
  place.replaceChildren(strip(one, tell, place), ...one.space === "shared" ? banks(one, space) : sectors(one, memory, space));
}

// A tensor's or variable's element at an address.
function placeOf(address, memory) {
  const own = memory.find(({begin, bytes}) => address >= begin && address < begin + bytes);
  if (!own) return `byte ${address}`;
  const extents = data.trace.extents[own.name] || [], at = address - own.begin;
  let index = Math.floor(at / WORD);
  const indices = extents.map((_, i) => {
    const below = extents.slice(i + 1).reduce((product, extent) => product * extent, 1), value = Math.floor(index / below);
    index %= below;
    return `[${value}]`;
  });
  return `${own.name}${indices.join("")}${extents.length ? "," : ""} byte ${at}`;
}

// The 32 lanes; the one under the pointer, or reached with the arrow keys, lights up in the figure.
function strip(one, tell, place) {
  const light = lane => {
    place.querySelectorAll(".lit").forEach(cell => cell.classList.remove("lit"));
    place.querySelectorAll(`[data-lanes~="${lane}"]`).forEach(cell => cell.classList.add("lit"));
    told.textContent = tell(lane);
  };
  const told = h("p", {class: "small told", "aria-live": "polite"}, "Lanes: point at one, or use the arrow keys.");
  const cells = one.address.map((address, lane) => h("button", {
    class: address === null ? "lane off" : "lane", tabindex: lane === 0 ? 0 : -1, "aria-label": tell(lane), "data-lanes": lane,
    onpointerenter: () => light(lane), onfocus: () => light(lane),
    onkeydown: event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (step) cells[(lane + step + LANES) % LANES].focus();
    }}, String(lane)));
  return h("div", {}, h("div", {class: "strip"}, cells), told);
}

function cell(x, y, width, height, lanes, kind) {
  const label = lanes.length === 1 ? lanes[0] : lanes.length > 1 ? "×" + lanes.length : "";
  return svg("g", {class: "cell " + kind, "data-lanes": lanes.join(" "), "data-tip": lanes.length
    ? `${lanes.length > 1 ? "lanes" : "lane"} ${lanes.join(", ")}` : null},
    svg("rect", {x, y, width, height}), label === "" ? null : svg("text", {x: x + width / 2, y: y + height / 2 + 4}, label));
}

function sectors(one, memory, width) {
  const found = one.services.map(({lanes}) => ({lanes, sector: Math.floor(one.address[lanes[0]] / SECTOR)}))
    .sort((own, other) => own.sector - other.sector);
  const words = SECTOR / WORD, columns = width >= 1000 ? 8 : width >= 500 ? 4 : 2;
  const wide = Math.floor(((width + 10) / columns - 12) / words), step = words * wide + 12, height = 46;
  const cells = found.map(({sector, lanes}, n) => {
    const x = n % columns * step + 1, y = Math.floor(n / columns) * height + 14;
    const own = memory.find(({begin, bytes}) => (sector + 1) * SECTOR > begin && sector * SECTOR < begin + bytes);
    return svg("g", {class: "sector"}, svg("text", {x, y: y - 3, class: "label"}, own ? `byte ${sector * SECTOR - own.begin}` : ""),
      Array.from({length: words}, (_, i) => {
        const users = lanes.filter(lane => wordsOf(one.address[lane], one.bytes).includes(sector * words + i));
        return cell(x + i * wide, y, wide, 20, users, users.length ? "used" : "unused");
      }), svg("rect", {x, y, width: words * wide, height: 20, class: "frame"}));
  });
  const used = new Set(active(one.address).map(lane => one.address[lane])).size * one.bytes;
  return [h("p", {class: "result"}, `${plural(found.length, "sector")}: ${found.length * SECTOR} bytes move, ${used} different ones are asked for (${percent(used / found.length / SECTOR)}).`),
    svg("svg", {width: columns * step, height: Math.ceil(found.length / columns) * height, role: "img", "data-drawn": found.length,
                "aria-label": plural(found.length, "sector")}, cells),
    h("p", {class: "small"}, "A frame is a sector of 32 bytes, a cell one word of 4; in it the lane that asks for it, or ×n lanes. ",
      h("span", {class: "key used"}), " used, ", h("span", {class: "key unused"}), " moved for nothing.")];
}

function banks(one, width) {
  const found = one.services, margin = 74, columns = width > 560 ? BANKS : BANKS / 2;
  const wide = Math.floor((width - margin - 2) / columns), lines = BANKS / columns, height = 20 * lines + 6;
  const head = 14, conflicts = found.filter(({kind}) => kind).length;
  const numbers = Array.from({length: columns}, (_, bank) =>
    svg("text", {x: margin + (bank + 0.5) * wide, y: 10, class: "label middle"}, bank % 4 ? "" : bank));
  const rows = found.map(({lanes, kind}, n) => {
    const y = head + n * height, side = kind === SOURCE_CONFLICT ? one.otherEnd : one.address;
    const label = kind ? "conflict" : found.length - conflicts > 1 ? `${lanes[0]}–${lanes[lanes.length - 1]}` : "";
    return svg("g", {class: "wavefront"}, svg("text", {x: 0, y: y + 14, class: "label"}, `${n + 1} ${label}`),
      Array.from({length: BANKS}, (_, bank) => {
        const users = lanes.filter(lane => wordsOf(side[lane], one.bytes).some(word => (word & BANKS - 1) === bank));
        return cell(margin + bank % columns * wide, y + Math.floor(bank / columns) * 20, wide, 19, users,
          !users.length ? "idle" : kind ? "conflict" : "used");
      }));
  });
  const bytes = new Set(active(one.address).map(lane => one.address[lane])).size * one.bytes;
  return [h("p", {class: "result"}, `${plural(found.length, "wavefront")}, ${conflicts} of them due to bank conflicts; ` +
      `${bytes} different bytes, where ${plural(found.length, "wavefront")} could carry ${found.length * LINE}.`),
    svg("svg", {width: margin + columns * wide + 1, height: head + found.length * height, role: "img", "data-drawn": found.length,
                "aria-label": plural(found.length, "wavefront")}, numbers, rows),
    h("p", {class: "small"}, `A row is a wavefront${lines > 1 ? " (banks 0 to 15, below them 16 to 31)" : ""}, a cell a bank with the lane that it serves, or ×n lanes. `,
      h("span", {class: "key used"}), " served, ", h("span", {class: "key conflict"}), " a wavefront more, since a bank was wanted twice.",
      one.operation === "copy" && one.bytes < 16 ? " Of a copy, first the banks where it is written, then those where the L1 is read a second time and more." : "")];
}

// ---- Roofline and traffic ----

const LEVELS = {requested: "▼", L1: "●", L2: "■", DRAM: "◆", touched: "▲"};  // no meaning hangs on colour alone

function roofline() {
  const roof = profile() && profile().roofline;
  const place = body("roofline");
  if (!roof) {
    place.replaceChildren(h("p", {}, "It needs times and counters of one problem, both of a GPU: ", h("code", {}, "./ladder bench"), " and ", h("code", {}, "./ladder profile"), "."));
    return;
  }
  const points = Object.entries(roof.points).flatMap(([level, list]) => list.map(([stage, x, y]) => ({level, stage, x, y})));
  const width = Math.max(place.clientWidth, 300), height = Math.min(480, width), left = 60, right = 14, top = 12, bottom = 52;
  const axis = (values, low, high, from, to) => {
    const [least, most] = [Math.min(...values) / low, Math.max(...values) * high].map(Math.log10);
    return Object.assign(value => from + (Math.log10(value) - least) / (most - least) * (to - from), {least: 10 ** least, most: 10 ** most});
  };
  const x = axis(points.map(p => p.x), 2, 3, left, width - right), y = axis([...points.map(p => p.y), roof.peak], 1.5, 1.5, height - bottom, top);
  const ticks = scale => [-3, -2, -1, 0, 1, 2, 3, 4].flatMap(power => [1, 2, 5].map(digit => digit * 10 ** power))
    .filter(value => value >= scale.least && value <= scale.most);
  const grid = [...ticks(x).map(value => [x(value), height - bottom, x(value), top, value, x(value), height - bottom + 14]),
                ...ticks(y).map(value => [left, y(value), width - right, y(value), value, left - 14, y(value) + 4])]
    .map(([x1, y1, x2, y2, value, tx, ty]) => [svg("line", {x1, y1, x2, y2, class: "grid"}), svg("text", {x: tx, y: ty, class: "label middle"}, +value.toPrecision(2))]);
  const roofs = Object.entries(roof.slopes).map(([level, rate]) => {
    const begin = Math.max(x.least, y.least / rate), end = roof.peak / rate, name = `${level}: ${rate.toPrecision(3)} TB/s, measured`;
    return svg("line", {x1: x(begin), y1: y(begin * rate), x2: x(end), y2: y(roof.peak), class: "roof " + level, "data-tip": name});
  });
  const peak = svg("line", {x1: left, x2: width - right, y1: y(roof.peak), y2: y(roof.peak), class: "roof peak", "data-tip": `loop of FMAs: ${roof.peak.toPrecision(3)} TFLOP/s, measured`});
  const climbs = Object.entries(roof.points).map(([level, list]) =>
    svg("polyline", {points: list.map(([, own, rate]) => `${x(own)},${y(rate)}`).join(" "), class: "climb " + level}));
  const marks = points.map(p => svg("text", {x: x(p.x), y: y(p.y) + 5, class: `mark ${p.level}${p.stage === state.stage ? " chosen" : ""}`, tabindex: 0, role: "img",
    "aria-label": `${p.stage}, ${p.level}: ${p.x.toPrecision(3)} FLOP per byte, ${p.y.toPrecision(3)} TFLOP/s`,
    "data-tip": `${p.stage}, ${p.level}: ${p.x.toPrecision(3)} FLOP per byte, ${p.y.toPrecision(3)} TFLOP/s`}, LEVELS[p.level]));
  const named = [];  // the chosen stage's first; none where another stands already
  const free = p => named.every(other => Math.abs(x(other.x) - x(p.x)) > 18 || Math.abs(y(other.y) - y(p.y)) > 12);
  for (const p of [...points].sort((a, b) => (b.stage === state.stage) - (a.stage === state.stage))) if (free(p)) named.push(p);
  const names = named.map(p => svg("text", {x: x(p.x), y: y(p.y) - 12, class: "tag"}, short(p.stage)));
  const titles = [
    svg("text", {x: (left + width - right) / 2, y: height - 6, class: "label middle"}, "FLOP per byte that crosses a level"),
    svg("text", {x: 0, y: 0, class: "label middle", transform: `translate(14 ${(top + height - bottom) / 2}) rotate(-90)`}, "TFLOP/s, cold L2"),
    svg("text", {x: left + 6, y: y(roof.peak) - 6, class: "label"}, "FMA ceiling"),
    ...Object.entries(roof.slopes).map(([level, rate]) => {
      const at = Math.max(x.least, y.least / rate) * 1.15;
      return svg("text", {x: x(at) + 8, y: y(at * rate) + 4, class: "label"}, level);
    })];
  place.replaceChildren(
    h("p", {class: "small"}, `The chosen stage is the large one. `,
      Object.keys(roof.points).map(level => h("span", {class: "legend " + level}, `${LEVELS[level]} ${level} `)), " Lines: what was measured as the most."),
    svg("svg", {width, height, role: "group", "aria-label": "roofline"}, grid, climbs, roofs, peak, titles, marks, names));
}

function traffic() {
  const own = profile();
  if (!own) return body("traffic").replaceChildren(...notices("profile"));
  const columns = own.levels.map(level => own.columns.find(column => column.heading === level)).filter(column => column);
  const values = columns.flatMap(column => Object.values(column.cells).map(([value]) => value)).filter(value => value > 0);
  const least = Math.log(Math.min(own.least, ...values) / 2), most = Math.log(Math.max(...values) * 1.1);
  const place = value => clamp(100 * (Math.log(value) - least) / (most - least), 0, 100);
  const groups = own.stages.map(stage => h("div", {class: stage === state.stage ? "group chosen" : "group"}, h("h3", {}, stage),
    columns.filter(column => column.cells[stage]).map(({heading, cells}) => h("div", {class: "level", tabindex: 0,
      "data-tip": `${stage}, ${heading}: ${cells[stage][1]}, ${(cells[stage][0] / own.least).toPrecision(3)} × the least. ${own.meanings[heading]}`},
      h("span", {class: "legend " + heading}, `${LEVELS[heading]} ${heading}`),
      h("span", {class: "track"}, h("span", {class: `bar solid ${heading}`, style: `left:0;width:${place(cells[stage][0])}%`}),
        h("span", {class: "least", style: `left:${place(own.least)}%`})),
      h("span", {class: "value"}, cells[stage][1])))));
  body("traffic").replaceChildren(h("p", {class: "small"}, `Bytes, counted by ${own.source}; logarithmic. The thin line is the least that must move: ${own.least_text}.`),
    h("div", {class: "groups"}, groups));
}

// ---- Pictures ----

function pictures() {
  const own = data.pictures, place = body("pictures");
  if (!own) return place.replaceChildren(...notices("run"));
  const {H, W, K, R, S, P, Q, columns, gap} = own;
  const box = h("div", {class: "window"}), told = h("p", {id: "told", "aria-live": "polite"}, "Point at a feature map, or move over it with the arrow keys.");
  const filter = h("div", {class: "filter", role: "img", "aria-label": "the filter"});
  const maps = h("img", {src: own.feature_maps, alt: `${K} feature maps`, tabindex: 0, id: "maps"});
  const step = [P * own.map_scale + gap, Q * own.map_scale + gap];
  let at = [0, 0, 0];
  const look = ([k, p, q]) => {
    at = [k, p, q];
    const top = p * own.stride[0] - own.pad[0], left = q * own.stride[1] - own.pad[1];
    Object.assign(box.style, {left: 100 * left / W + "%", top: 100 * top / H + "%", width: 100 * S / W + "%", height: 100 * R / H + "%"});
    const tile = [R, S].map(extent => extent * own.filter_scale + gap);
    filter.style.backgroundPosition = `${-gap - k % columns * tile[1]}px ${-gap - Math.floor(k / columns) * tile[0]}px`;
    told.textContent = `Filter ${k}, output row ${p}, column ${q}: input rows ${top} to ${top + R - 1}, columns ${left} to ${left + S - 1}` +
      (top < 0 || left < 0 || top + R > H || left + S > W ? " (beyond the edge: zeros)." : ".");
  };
  maps.addEventListener("pointermove", event => {
    const scale = maps.naturalWidth / maps.clientWidth, [y, x] = [event.offsetY * scale - gap, event.offsetX * scale - gap];
    const k = Math.floor(y / step[0]) * columns + Math.floor(x / step[1]);
    const [p, q] = [[y % step[0], P], [x % step[1], Q]].map(([own_at, extent]) => clamp(Math.floor(own_at / own.map_scale), 0, extent - 1));
    if (x >= 0 && y >= 0 && k < K) look([k, p, q]);
  });
  maps.addEventListener("keydown", event => {
    const move = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]}[event.key];
    const turn = {PageDown: 1, PageUp: -1}[event.key] || 0;
    if (!move && !turn) return;
    event.preventDefault();
    const [dp, dq] = move || [0, 0];
    look([(at[0] + turn + K) % K, clamp(at[1] + dp, 0, P - 1), clamp(at[2] + dq, 0, Q - 1)]);
  });
  Object.assign(filter.style, {width: S * own.filter_scale + "px", height: R * own.filter_scale + "px", backgroundImage: `url(${own.filters})`});
  place.replaceChildren(told, h("div", {class: "views"},
    h("figure", {}, h("div", {class: "photo"}, h("img", {src: own.input, alt: "the input"}), box), h("figcaption", {}, `input, ${H} × ${W}`)),
    h("figure", {}, filter, h("figcaption", {}, `the filter, ${R} × ${S}`))),
    h("figure", {}, maps, h("figcaption", {}, `${K} feature maps of ${P} × ${Q}, computed on the ${own.backend === "gpu" ? "GPU" : "simulator"}; page keys change the map`)));
  look([0, P >> 1, Q >> 1]);
}

// ---- The beginning ----

function choices() {
  const parts = data.problems.length ? [
    choice("problem", "Problem", data.problems.map((one, i) => [i, one.title]), state.problem,
           value => { state.problem = Number(value); state.profile = 0; begin(); })] : [];
  if (problem() && problem().profiles.length) {
    parts.push(choice("profile", "counted by", problem().profiles.map((one, i) => [i, one.source]), state.profile,
                      value => { state.profile = Number(value); begin(); }));
  }
  document.getElementById("choices").replaceChildren(...parts);
}

function begin() {
  if (!stages().includes(state.stage)) {
    state.stage = [data.show, OPENS_ON[0], stages()[0]].find(stage => stages().includes(stage)) || "";
    if (!data.show && traced(OPENS_ON[1])) state.panels[1] = {stage: OPENS_ON[1]};
  }
  document.getElementById("machine").textContent = problem() ? problem().machine : "";
  redraw(choices);
  choose(state.stage);
}

const PARTS = {ladder: "The ladder", neighbours: "Two neighbours", warp: "A warp, line by line", roofline: "Roofline",
               traffic: "Traffic by level", pictures: "Pictures"};
for (const [id, title] of Object.entries(PARTS)) {
  document.querySelector("nav").append(h("a", {href: "#" + id}, title), " ");
  document.querySelector("main").append(h("section", {id, "aria-labelledby": id + "-title"},
    h("h2", {id: id + "-title"}, title), h("div", {class: "body"})));
}

const tip = document.getElementById("tip");
function tell(event) {
  const about = event.target.closest && event.target.closest("[data-tip]");
  tip.hidden = !about;
  if (!about) return;
  tip.textContent = about.getAttribute("data-tip");
  const place = about.getBoundingClientRect();
  tip.style.left = clamp(place.left, 4, Math.max(4, document.documentElement.clientWidth - tip.offsetWidth - 4)) + "px";
  tip.style.top = (place.top > tip.offsetHeight + 10 ? place.top - tip.offsetHeight - 6 : place.bottom + 6) + "px";
}
for (const event of ["pointerover", "focusin"]) document.addEventListener(event, tell);
document.addEventListener("scroll", () => { tip.hidden = true; }, {passive: true});
let width = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  redraw(warp, roofline);
});
begin();
pictures();
