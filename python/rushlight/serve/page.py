"""The page to chat on: one file, which asks nobody but this server."""

__all__ = ["PAGE"]

PAGE = """<!doctype html>
<html lang="en">
<title>rushlight</title>
<meta name="viewport" content="width=device-width">
<meta charset="utf-8">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 0 auto; padding: 1rem;
  min-height: 100vh; box-sizing: border-box; display: flex; flex-direction: column; }
#talk { flex: 1; }
.turn { white-space: pre-wrap; overflow-wrap: anywhere; padding: .5rem .8rem; margin: .5rem 0;
  border-radius: .6rem; }
.user { background: #e8eef7; margin-left: 4rem; }
.assistant { background: #f4f4f0; margin-right: 4rem; }
form { display: flex; gap: .5rem; position: sticky; bottom: 0; background: #fff; padding: .5rem 0; }
textarea { flex: 1; font: inherit; padding: .5rem; }
button { font: inherit; padding: 0 1rem; }
#state { color: #777; min-height: 1.5em; }
</style>
<h1>rushlight</h1>
<div id="talk"></div>
<div id="state" role="status">loading</div>
<form id="form">
<textarea id="text" rows="2" placeholder="Say something" aria-label="Message"></textarea>
<button id="send">Send</button>
<button id="stop" type="button" hidden>Stop</button>
</form>
<script>
const of = id => document.getElementById(id);
const messages = [];
let abort = null;

function turn(role, content) {
  const box = document.createElement("div");
  box.className = "turn " + role;
  box.textContent = content;
  of("talk").append(box);
  box.scrollIntoView();
  return box;
}

async function wait() {
  for (;;) {
    const said = await (await fetch("/health")).json();
    of("state").textContent = said.status === "ok" ? "" : said.status;
    if (said.status === "ok") return;
    await new Promise(done => setTimeout(done, 500));
  }
}

async function* pieces(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const events = held.split("\\n\\n");
    held = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const said = JSON.parse(data);
      if (said.error) throw new Error(said.error.message);
      yield said.choices[0]?.delta?.content ?? "";
    }
  }
}

async function send(text) {
  messages.push({ role: "user", content: text });
  turn("user", text);
  const box = turn("assistant", "");
  abort = new AbortController();
  of("send").hidden = true;
  of("stop").hidden = false;
  try {
    const response = await fetch("/v1/chat/completions", {
      method: "POST", signal: abort.signal,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ messages, stream: true, temperature: 0.8, top_k: 40, top_p: 0.95 }),
    });
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const piece of pieces(response)) {
      box.textContent += piece;
      box.scrollIntoView();
    }
  } catch (error) {
    if (error.name !== "AbortError") of("state").textContent = error.message;
  }
  messages.push({ role: "assistant", content: box.textContent });
  of("send").hidden = false;
  of("stop").hidden = true;
}

of("form").addEventListener("submit", event => {
  event.preventDefault();
  const text = of("text").value.trim();
  if (!text || !of("stop").hidden) return;
  of("text").value = "";
  of("state").textContent = "";
  send(text);
});
of("stop").addEventListener("click", () => abort?.abort());
of("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    of("form").requestSubmit();
  }
});
wait();
</script>
"""
