// The chat box: streams /v1/chat/completions. Text from the model is only ever set as text.

const element = (id) => document.getElementById(id);
const conversation = [];
let running = null; // the AbortController of the answer in progress

function addTurn(role, text) {
  element("turns").querySelector(".empty")?.remove();
  const turn = document.createElement("div");
  turn.className = `turn ${role}`;
  const body = document.createElement("span");
  body.textContent = text;
  const note = document.createElement("span");
  note.className = "note";
  turn.append(body, note);
  element("turns").append(turn);
  scroll();
  return { turn, body, note };
}

function scroll() {
  element("turns").scrollTop = element("turns").scrollHeight;
}

function showEmpty() {
  const empty = document.createElement("p");
  empty.className = "empty";
  empty.textContent = "Nothing has been asked yet.";
  element("turns").replaceChildren(empty);
}

// The data of each server-sent event.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    pending += value;
    for (let end = pending.indexOf("\n\n"); end >= 0; end = pending.indexOf("\n\n")) {
      const data = pending.slice(0, end).split("\n").filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).trimStart()).join("\n");
      pending = pending.slice(end + 2);
      if (data) yield data;
    }
  }
}

async function answer(request, shown) {
  const asked = performance.now();
  let first = 0;
  let last = 0;
  let text = "";
  let usage = null;
  let reason = null;
  const response = await request({
    model: "default", messages: conversation, stream: true, stream_options: { include_usage: true },
    max_tokens: Math.max(1, Number(element("max-tokens").value) || 256),
  }, running.signal);
  if (!response.ok) {
    const failure = await response.json().catch(() => null);
    throw new Error(failure?.error?.message ?? `the server answered ${response.status}`);
  }
  for await (const data of events(response.body)) {
    if (data === "[DONE]") break;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    usage = chunk.usage ?? usage;
    reason = chunk.choices?.[0]?.finish_reason ?? reason;
    const piece = chunk.choices?.[0]?.delta?.content;
    if (!piece) continue;
    last = performance.now();
    first ||= last;
    text += piece;
    shown.body.textContent = text;
    scroll();
  }
  conversation.push({ role: "assistant", content: text });
  const notes = [];
  if (usage) notes.push(`${usage.completion_tokens} tokens`);
  if (first) notes.push(`first after ${Math.round(first - asked)} ms`);
  if (usage?.completion_tokens > 1 && last > first) {
    notes.push(`${((usage.completion_tokens - 1) * 1000 / (last - first)).toFixed(1)} tokens/s`);
  }
  if (reason === "length") notes.push("cut at its limit");
  shown.note.textContent = notes.join(" · ");
}

async function send(request) {
  const text = element("ask").value.trim();
  if (!text) return;
  element("ask").value = "";
  conversation.push({ role: "user", content: text });
  addTurn("user", text);
  const shown = addTurn("assistant", "");
  running = new AbortController();
  element("send").textContent = "Stop";
  try {
    await answer(request, shown);
  } catch (failure) {
    conversation.pop(); // the question may be asked again
    shown.turn.classList.add("failed");
    shown.note.textContent = failure.name === "AbortError" ? "stopped" : failure.message;
  }
  running = null;
  element("send").textContent = "Send";
}

// `request(body, signal)` posts a chat completion, with the key when there is one.
export function startChat(request) {
  showEmpty();
  element("chat-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running.abort();
    else send(request);
  });
  element("ask").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!running) send(request);
  });
  element("clear").addEventListener("click", () => {
    running?.abort();
    conversation.length = 0;
    showEmpty();
  });
}
