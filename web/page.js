// The live page: asks /debug/state each second and shows what has changed.
import { drawMap, hasCharts, lineChart, milliseconds, onThemeChange, percent, plain } from "./charts.js";
import { startChat } from "./chat.js";

const KEPT = 300; // samples: five minutes
const element = (id) => document.getElementById(id);
const show = (id, text) => { if (element(id).textContent !== text) element(id).textContent = text; };
const whole = new Intl.NumberFormat("en");

let key = sessionStorage.getItem("assay-key") ?? "";
let samples = [];
let next = 0; // number of the first sample that is missing
let cells = "";
let earlier = null; // tenants at the poll before, for their rates

const authorised = () => (key ? { Authorization: `Bearer ${key}` } : {});

function askForKey(wrong) {
  element("key-form").hidden = false;
  show("key-error", wrong ? "The server does not know this key." : "");
  showStatus("lost", "needs a key");
}

function showStatus(kind, text) {
  element("dot").className = `dot ${kind}`;
  show("status", text);
}

function duration(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

const charts = [
  lineChart("c-throughput", [{ name: "output", column: "output_tps" }, { name: "prompt", column: "prompt_tps" }], plain),
  lineChart("c-ttft", [{ name: "p50", column: "ttft_p50" }, { name: "p95", column: "ttft_p95" }, { name: "p99", column: "ttft_p99" }], milliseconds),
  lineChart("c-itl", [{ name: "p50", column: "itl_p50" }, { name: "p95", column: "itl_p95" }, { name: "p99", column: "itl_p99" }], milliseconds),
  lineChart("c-load", [{ name: "running", column: "running" }, { name: "waiting", column: "waiting" }], plain),
  lineChart("c-step", [{ name: "decode", column: "decode_step_seconds" }, { name: "prefill", column: "prefill_step_seconds" }], milliseconds),
  lineChart("c-prefix", [{ name: "hits", column: "prefix_hit_ratio" }], percent, { max: 1, interval: 0.25 }),
];

// New rows behind the old ones; false when there is a gap and everything must be asked anew.
function take({ first, columns, rows }) {
  if (first > next || first + rows.length < next) {
    samples = [];
    const complete = next === 0;
    next = 0;
    if (!complete) return false;
  }
  for (const row of rows) samples.push(Object.fromEntries(columns.map((name, i) => [name, row[i]])));
  samples = samples.slice(-KEPT);
  next = first + rows.length;
  return true;
}

function showLatency(id, column, sample) {
  const median = sample?.[`${column}_p50`] ?? null;
  const [value, unit] = median === null ? ["–", "ms"] : milliseconds(median).split(" ");
  show(id, value);
  show(`${id}-unit`, unit);
  show(`${id}-detail`, median === null ? "none in the last minute" : `p99 ${milliseconds(sample[`${column}_p99`])} (60 s)`);
}

function showFigures(now) {
  const sample = samples[samples.length - 1];
  show("f-output", sample ? plain(sample.output_tps) : "–");
  show("f-output-detail", sample ? `prompt ${plain(sample.prompt_tps)} tokens/s` : "");
  showLatency("f-ttft", "ttft", sample);
  showLatency("f-itl", "itl", sample);
  show("f-running", whole.format(now.running));
  show("f-running-detail", now.waiting > 0 ? `${whole.format(now.waiting)} waiting, ${milliseconds(now.expected_queue_seconds)} expected` : "none waiting");
  const total = Math.max(1, now.kv_blocks_total);
  show("f-kv", ((100 * now.kv_blocks_used) / total).toFixed(1));
  show("f-kv-detail", `${((100 * now.kv_blocks_cached) / total).toFixed(1)} % cached, ${(100 * now.kv_fragmentation_ratio).toFixed(0)} % fragmented`);
  show("f-prefix", (100 * now.prefix_hit_ratio).toFixed(1));
  show("f-prefix-detail", "since the start");
}

function showMap(map, now) {
  cells = map.cells;
  const count = (letter) => whole.format(cells.split(letter).length - 1);
  const unit = map.pages_per_cell > 1 ? `${map.pages_per_cell} pages a square` : "one page a square";
  show("map-detail", `${whole.format(now.kv_blocks_total)} of ${now.kv_page_tokens} tokens, ${unit}`);
  for (const [id, letter] of [["n-used", "u"], ["n-shared", "s"], ["n-cached", "c"], ["n-free", "f"]]) show(id, count(letter));
  drawMap(element("map"), cells);
}

function showTenants(tenants, outcomes) {
  const at = performance.now();
  const rows = tenants.map((tenant) => {
    const before = earlier?.output.get(tenant.tenant);
    const rate = before === undefined ? null : ((tenant.output_tokens - before) * 1000) / (at - earlier.at);
    const row = document.createElement("tr");
    for (const text of [tenant.tenant, whole.format(tenant.running), whole.format(tenant.waiting), whole.format(tenant.kv_blocks),
      whole.format(tenant.prompt_tokens), whole.format(tenant.output_tokens), rate === null ? "–" : plain(Math.max(0, rate))]) {
      row.append(Object.assign(document.createElement("td"), { textContent: text }));
    }
    return row;
  });
  earlier = { at, output: new Map(tenants.map((tenant) => [tenant.tenant, tenant.output_tokens])) };
  element("tenants").replaceChildren(...rows);
  const ended = Object.entries(outcomes).map(([name, n]) => `${name.replace("_", " ")} ${whole.format(n)}`);
  show("outcomes", ended.length ? `Requests ended: ${ended.join(" · ")}` : "No request has ended yet.");
}

function showAll(state) {
  const { server } = state;
  show("model", server.model);
  show("precision", server.precision);
  show("uptime", `up ${duration(server.uptime_seconds)}`);
  document.title = `assay · ${server.model}`;
  showStatus(server.status, server.status);
  showFigures(state.now);
  showMap(state.kv_map, state.now);
  showTenants(state.tenants, state.outcomes);
  for (const chart of charts) chart.update(samples);
}

async function poll() {
  let response;
  try {
    response = await fetch(`/debug/state?since=${next - 1}`, {
      headers: authorised(), credentials: "omit", signal: AbortSignal.timeout(5000),  // no dialogue of the browser's
    });
  } catch {
    return showStatus("lost", "no connection");
  }
  if (response.status === 401 || response.status === 403) return askForKey(key !== "");
  if (!response.ok) return showStatus("lost", `error ${response.status}`);
  element("key-form").hidden = true;
  const state = await response.json();
  if (!take(state.samples)) return poll();
  showAll(state);
}

async function run() {
  for (;;) {
    if (!document.hidden && !(element("key-form").hidden === false && document.activeElement === element("key"))) {
      await poll().catch((failure) => showStatus("lost", failure.message));
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

element("no-charts").hidden = hasCharts;
element("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key = element("key").value.trim();
  sessionStorage.setItem("assay-key", key);
  element("key").blur();
  poll();
});
startChat((body, signal) => fetch("/v1/chat/completions", {
  method: "POST", signal, credentials: "omit", headers: { "Content-Type": "application/json", ...authorised() }, body: JSON.stringify(body),
}));
onThemeChange(() => drawMap(element("map"), cells));
run();
