"""The server of language models: what it answers, streams and refuses, its queue, and how it ends."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

import rushlight as torch
from rushlight.language import Tokenizer
from rushlight.serve.engine import Busy, Engine, Job, _Text
from rushlight.serve.http import Server
from rushlight.serve.prompts import prompt_of
from tests.python import test_language
from tests.python.test_language import pieces

# As many words as the network has: those of control, 26 letters, and more.
LETTERS = [chr(97 + i) for i in range(26)]
FIXED = ["<unk>", "<s>", "</s>", "▁"]
VOCABULARY = [*FIXED, *LETTERS, *(f"w{i}" for i in range(60 - len(FIXED) - 26))]


def metadata(**more):
    found = {k: v for k, v in pieces().items() if not k.endswith(("tokens", "scores", "type"))}
    return (
        test_language.METADATA
        | found
        | {
            "tokenizer.ggml.tokens": VOCABULARY,
            "tokenizer.ggml.token_type": torch.tensor([2, 3, 3, *[1] * 57], dtype=torch.int32),
            "tokenizer.ggml.scores": torch.zeros(60),
        }
        | more
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("serve") / "tiny.gguf"
    torch.gguf.save(made, metadata(), test_language.tensors("Q8_0"))
    return str(made)


@pytest.fixture(scope="module")
def server(path):
    torch.use_batch_invariant(True)  # answers then do not depend on what else is asked
    engine = Engine(path, waiting=2)
    made = Server(("127.0.0.1", 0), engine, "tiny")
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    engine.start()
    assert engine.ready.wait(60) and engine.state == "ok"
    yield made
    made.shutdown()
    engine.stop()
    made.server_close()
    thread.join()
    torch.use_batch_invariant(False)


def ask(server, path, body=None, method=None, headers=()):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=60)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body)
    sent = {"Content-Type": "application/json"} | dict(headers)
    connection.request(method or ("GET" if body is None else "POST"), path, data, sent)
    found = connection.getresponse()
    text = found.read().decode()
    connection.close()
    return found.status, text


def answer(server, path, **body):
    status, text = ask(server, path, body)
    assert status == 200, text
    return json.loads(text)


def events(server, path, **body):
    status, text = ask(server, path, body | {"stream": True})
    assert status == 200 and text.endswith("data: [DONE]\n\n")
    return [json.loads(line[6:]) for line in text.split("\n\n")[:-2]]


COMPLETE, CHAT = "/v1/completions", "/v1/chat/completions"
SAID = [{"role": "user", "content": "abc"}]


def test_answers_are_what_the_network_makes(server):
    found = answer(server, COMPLETE, prompt="abc", max_tokens=8, temperature=0)
    net, tokenizer = server.engine.net, server.engine.tokenizer
    tokens = list(net.generate(tokenizer.encode("abc", bos=True), 8, stop=[2]))
    server.engine._seats[0].read = 0  # this test used the network itself
    choice = found["choices"][0]
    assert choice["text"] == b"".join(map(tokenizer.piece, tokens)).decode()
    assert choice["finish_reason"] == ("length" if len(tokens) == 8 else "stop")
    assert found["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": len(tokens),
        "total_tokens": 5 + len(tokens),
    }
    assert found["object"] == "text_completion" and found["model"] == "tiny"
    as_tokens = answer(
        server, COMPLETE, prompt=tokenizer.encode("abc", bos=True), max_tokens=8, temperature=0
    )
    assert as_tokens["choices"] == found["choices"]


def test_streams_come_to_the_same_text(server):
    how = {"max_tokens": 9, "temperature": 0}
    whole = answer(server, COMPLETE, prompt="abc", **how)["choices"][0]
    parts = events(server, COMPLETE, prompt="abc", stream_options={"include_usage": True}, **how)
    assert "".join(p["choices"][0]["text"] for p in parts[:-1]) == whole["text"]
    assert parts[-2]["choices"][0]["finish_reason"] == whole["finish_reason"]
    assert parts[-1]["usage"]["total_tokens"] == 5 + 9 and len(parts) > 4
    whole = answer(server, CHAT, messages=SAID, **how)["choices"][0]
    parts = events(server, CHAT, messages=SAID, **how)
    deltas = [p["choices"][0]["delta"] for p in parts]
    assert deltas[0]["role"] == "assistant"
    assert "".join(d.get("content", "") for d in deltas) == whole["message"]["content"]
    assert {p["object"] for p in parts} == {"chat.completion.chunk"}


def test_draws_follow_from_the_seed(server):
    def drawn(seed):
        return answer(server, CHAT, messages=SAID, max_tokens=20, seed=seed)["choices"]

    assert drawn(1) == drawn(1) != drawn(2)


def test_texts_that_end_an_answer_are_not_said(server):
    how = {"prompt": "abc", "max_tokens": 12, "temperature": 0}
    text = answer(server, COMPLETE, **how)["choices"][0]["text"]
    stop = text[4:6]
    found = answer(server, COMPLETE, stop=[stop, "never"], **how)["choices"][0]
    assert found["text"] == text[: text.index(stop)] and found["finish_reason"] == "stop"
    parts = events(server, COMPLETE, stop=stop, **how)
    assert "".join(p["choices"][0]["text"] for p in parts) == found["text"]


@pytest.mark.parametrize(
    ("where", "body", "message"),
    [
        (COMPLETE, b"{", "no JSON"),
        (COMPLETE, b"[" * 100000, "no JSON"),
        (COMPLETE, [], "must be an object"),
        (COMPLETE, {}, "prompt must be a string"),
        (COMPLETE, {"prompt": [99]}, "prompt must be"),
        (COMPLETE, {"prompt": []}, "has 0 tokens"),
        (COMPLETE, {"prompt": "a" * 100}, "it may have 1 to 63"),
        (COMPLETE, {"prompt": "a", "temperature": "hot"}, "temperature cannot be 'hot'"),
        (COMPLETE, {"prompt": "a", "temperature": -1}, "temperature cannot be -1"),
        (COMPLETE, {"prompt": "a", "max_tokens": 0}, "max_tokens cannot be 0"),
        (COMPLETE, {"prompt": "a", "top_p": True}, "top_p cannot be True"),
        (COMPLETE, {"prompt": "a", "seed": 1 << 64}, "seed cannot be"),
        (COMPLETE, {"prompt": "a", "stop": [1]}, "stop must be"),
        (COMPLETE, {"prompt": "a", "n": 2}, "n is not supported"),
        (CHAT, {"messages": []}, "messages must be a list"),
        (CHAT, {"messages": [{"role": "god", "content": ""}]}, "one of the roles"),
        (CHAT, {"messages": [{"role": "user", "content": [{"image": 1}]}]}, "must be text"),
        (CHAT, {"messages": SAID, "tools": [1]}, "tools is not supported"),
    ],
)
def test_requests_that_are_not_understood_are_refused(server, where, body, message):
    status, text = ask(server, where, body)
    error = json.loads(text)["error"]
    assert status == 400 and message in error["message"]
    assert error["type"] == "invalid_request_error"


def test_pages_of_others_cannot_ask(server):
    body = json.dumps({"prompt": "a"}).encode()
    status, text = ask(server, COMPLETE, body, headers={"Content-Type": "text/plain"})
    assert status == 400 and "application/json" in text
    for host in ("example.com", "example.com:80"):
        assert ask(server, "/v1/models", headers={"Host": host})[0] == 403
        assert ask(server, COMPLETE, body, headers={"Host": host})[0] == 403
    assert ask(server, "/v1/models", headers={"Host": "localhost:1234"})[0] == 200
    for length in (str(1 << 40), "many"):
        status, text = ask(server, COMPLETE, b"{}", headers={"Content-Length": length})
        assert status == 400 and "the body must have at most" in text


def test_the_page_and_what_else_there_is(server):
    status, text = ask(server, "/")
    assert status == 200 and "<!doctype html>" in text and not re.search(r"https?://", text)
    assert json.loads(ask(server, "/v1/models")[1])["data"][0]["id"] == "tiny"
    assert json.loads(ask(server, "/health")[1]) == {"status": "ok", "done": 3, "of": 3}
    assert ask(server, "/else")[0] == 404 and ask(server, "/else", {})[0] == 404


def test_several_ask_at_once_and_the_queue_has_an_end(server):
    alone = answer(server, COMPLETE, prompt="abc", max_tokens=30, temperature=0)["choices"]
    found = []

    def one():
        found.append(ask(server, COMPLETE, {"prompt": "abc", "max_tokens": 30, "temperature": 0}))

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {status for status, _ in found} <= {200, 503}
    for status, text in found:
        if status == 200:
            assert json.loads(text)["choices"] == alone
        else:
            assert "too many requests are waiting" in text
    assert any(status == 200 for status, _ in found)


def test_answers_side_by_side_are_as_if_alone(server):
    prompts = ["abc", "hello there", "z", "qwertyuiopasdfgh", "a b c", "zz"]
    how = {"max_tokens": 25, "temperature": 0}
    alone = [answer(server, COMPLETE, prompt=p, **how)["choices"] for p in prompts]
    steps = []
    net = server.engine.net
    step = net.step
    net.step = lambda tokens, which: (steps.append(len(which)), step(tokens, which))[1]
    found = [None] * len(prompts)

    def one(i):
        status = 503
        while status == 503:  # the queue is short
            status, text = ask(server, COMPLETE, {"prompt": prompts[i], **how})
        found[i] = json.loads(text)["choices"]

    try:
        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(prompts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        del net.step
    assert found == alone and max(steps) > 1


def test_a_failure_is_told_to_whom_it_concerns(server):
    net = server.engine.net
    step = net.step
    net.step = lambda *_: 1 / 0
    try:
        status, text = ask(server, COMPLETE, {"prompt": "abc", "temperature": 0})
        assert status == 500 and "division by zero" in text
    finally:
        net.step = step
        del net.step
    assert answer(server, COMPLETE, prompt="abc", max_tokens=3, temperature=0)["choices"]


def test_the_package_tokenizers_cuts_texts_where_its_file_lies_beside(path, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    from rushlight.serve.tokens import tokenizer_of

    said = torch.gguf.load(path)[0]
    words = {word: i for i, word in enumerate(VOCABULARY)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    found = tokenizer_of(str(tmp_path / "net.gguf"), said)
    assert found.encode("w3 a", bos=True) == [1, words["w3"], words["a"]]
    assert found.piece(words["w3"]) == b"w3" and found.ends == {2}
    words["b"], words["a"] = words["a"], words["b"]
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "<unk>"))
    made.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match="another vocabulary"):
        tokenizer_of(str(tmp_path / "net.gguf"), said)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="is no tokenizer"):
        tokenizer_of(str(tmp_path / "net.gguf"), said)


def test_a_full_queue_refuses(server):
    engine = Engine("none", waiting=1)
    engine.ready.set()
    job = Job([1], None, 1)
    engine.submit(job)
    with pytest.raises(Busy, match="too many requests are waiting"):
        engine.submit(job)


def test_a_client_that_goes_away_ends_its_answer(server):
    engine = server.engine
    jobs = []
    submit = engine.submit
    engine.submit = lambda job: (jobs.append(job), submit(job))[1]
    try:
        connection = http.client.HTTPConnection(*server.server_address[:2], timeout=60)
        body = json.dumps({"prompt": "abc", "max_tokens": 59, "stream": True})
        connection.request("POST", COMPLETE, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read(10)
        response.close()
        connection.close()
        assert jobs[0].cancelled.wait(60)
    finally:
        engine.submit = submit
    assert answer(server, COMPLETE, prompt="abc", max_tokens=2)["usage"]["completion_tokens"] <= 2


def test_what_was_seen_is_not_computed_again(server):
    given = []
    net = server.engine.net
    read, step = net.read, net.step
    net.read = lambda tokens, which: (given.append(len(tokens)), read(tokens, which))[1]
    net.step = lambda tokens, which: (given.append(1), step(tokens, which))[1]
    try:
        first = answer(server, COMPLETE, prompt="abcdefgh", max_tokens=3, temperature=0)
        again = answer(server, COMPLETE, prompt="abcdefgh", max_tokens=3, temperature=0)
        assert first["choices"] == again["choices"]
        assert given[0] > 1 and given.count(1) >= 3 and max(given[1:]) == 1
    finally:
        del net.read, net.step


# ---- parts ----


def test_text_is_held_back_where_it_may_be_an_end():
    text = _Text(["stop", "xyz"])
    assert [text.add(part) for part in (b"a s", b"to", b"n st", b"op!")] == ["a ", "", "ston ", ""]
    assert text.ended
    text = _Text([])
    assert [text.add(b"\xc3"), text.add(b"\xa9\xff")] == ["", "é\ufffd"]
    text = _Text(["stop"])
    assert text.add(b"st") + text.add(b"", last=True) == "st"


MESSAGES = [
    {"role": "system", "content": "S"},
    {"role": "user", "content": "U"},
    {"role": "assistant", "content": "A"},
    {"role": "user", "content": "V"},
]


def test_prompts_follow_the_template_of_the_file(monkeypatch):
    names = {"bos": "<s>", "eos": "</s>"}

    def written(template):
        return prompt_of({"tokenizer.chat_template": template}, MESSAGES, names)

    pytest.importorskip("jinja2")
    text = written("{{bos_token}}{% for m in messages %}{{m.role}}={{m['content']}};{% endfor %}")
    assert text == "<s>system=S;user=U;assistant=A;user=V;"
    for bad in ("{{ raise_exception('no') }}", "{% x", "{{ ''.__class__.__mro__ }}{{ x.y.z }}"):
        with pytest.raises(ValueError, match="template of the file"):
            written(bad)


def test_prompts_without_jinja(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2.sandbox", None)
    names = {"bos": "<s>", "eos": "</s>"}
    for template, expected in (
        (
            "<|im_start|>",
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA"
            "<|im_end|>\n<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n",
        ),
        ("[INST]", "[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s>[INST] V [/INST]"),
        ("", "system: S\nuser: U\nassistant: A\nuser: V\nassistant:"),
    ):
        found = prompt_of({"tokenizer.chat_template": template}, MESSAGES, names)
        assert found == expected
    headers = prompt_of({"tokenizer.chat_template": "<|start_header_id|>"}, MESSAGES[1:2], names)
    assert headers == (
        "<|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


# ---- as a program ----


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_the_program_serves_until_it_is_told_to_end(path, sign):
    command = [sys.executable, "-m", "rushlight.serve", path, "--port", "0", "--threads", "1"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        host, port = re.fullmatch(r"http://(.*):(\d+)/\n", run.stdout.readline()).groups()
        served = type("Served", (), {"server_address": (host, int(port))})
        status = 503
        while status == 503:
            status, _ = ask(served, "/health")
        assert answer(served, COMPLETE, prompt="abc", max_tokens=2)["choices"]
        run.send_signal(sign)
        assert run.wait(60) == 0, run.stderr.read()
    finally:
        run.kill()
        run.communicate()


def test_files_that_cannot_be_loaded_end_the_program(tmp_path):
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF")
    command = [sys.executable, "-m", "rushlight.serve", os.fspath(path), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "could not be loaded" in done.stderr


def test_the_vocabulary_is_read(path):
    assert Tokenizer(torch.gguf.load(path)[0]).encode("ab") == [3, 4, 5]
