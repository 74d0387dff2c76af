"""The C++ server of language models beside Python's, with the same files: the same tokens, refusals, endings."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import rushlight as torch
from tests.python import test_language
from tests.python.test_language import bytes_vocabulary
from tests.python.test_serve import metadata

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "cpp"
COMPLETE, CHAT = "/v1/completions", "/v1/chat/completions"

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The server, built as a project of its own."""
    build = tmp_path_factory.mktemp("build")
    prefix = f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"
    subprocess.run(["cmake", "-S", EXAMPLE, "-B", build, "-G", "Ninja", prefix], check=True)
    if "serve_llm" not in (build / "build.ninja").read_text():
        pytest.skip("needs cpp-httplib")
    subprocess.run(["cmake", "--build", build, "--target", "serve_llm"], check=True)
    return build / "serve_llm"


class Served:
    """A server as a process of its own, ready to answer."""

    def __init__(self, command):
        self.run = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        host, port = re.fullmatch(r"http://(.*):(\d+)/\n", self.run.stdout.readline()).groups()
        self.address = host, int(port)
        while self.ask("/health")[0] == 503:
            assert self.run.poll() is None, self.run.stderr.read()

    def ask(self, path, body=None, **headers):
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        sent = {"Content-Type": "application/json"} | headers
        connection.request("GET" if body is None else "POST", path, data, sent)
        found = connection.getresponse()
        text = found.read().decode()
        connection.close()
        return found.status, text

    def answer(self, path, **body):
        status, text = self.ask(path, body)
        assert status == 200, text
        return json.loads(text)

    def end(self, sign=signal.SIGTERM):
        self.run.send_signal(sign)
        try:
            return self.run.wait(60)
        finally:
            self.run.kill()
            self.run.communicate()


KINDS = {
    "pieces": lambda: (metadata(), test_language.tensors("Q8_0")),
    "template": lambda: (
        metadata(**{"tokenizer.chat_template": "<|im_start|>"}),
        {k: t for k, t in test_language.tensors("Q4_K").items() if k != "output.weight"},
    ),
    "numbers": lambda: (
        metadata(
            **{
                "llama.rope.scaling.type": "yarn",
                "llama.rope.scaling.factor": 4.0,
                "llama.rope.scaling.original_context_length": 16,
            }
        ),
        test_language.tensors() | {"rope_freqs.weight": torch.rand(16) + 0.5},
    ),
    "bytes": lambda: (_bytes_metadata(), _tensors_for(_bytes_metadata())),
}


def _bytes_metadata():
    merges = ["l l", "h e", "ll o", "he llo", "Ġ hello", "1 2", "12 3", "' s", "Ġ Ġ", "Ċ Ċ"]
    return test_language.METADATA | bytes_vocabulary("llama-bpe", merges)


def _tensors_for(said):
    words = len(said["tokenizer.ggml.tokens"])
    torch.manual_seed(1)
    big = {n: torch.randn(words, 256) * 0.06 for n in ("token_embd.weight", "output.weight")}
    return test_language.tensors() | big


@pytest.fixture(scope="module", params=KINDS)
def both(program, tmp_path_factory, request):
    """The two servers of one file."""
    path = tmp_path_factory.mktemp("serve") / "tiny.gguf"
    torch.gguf.save(path, *KINDS[request.param]())
    how = [
        path,
        "--port",
        "0",
        "--context",
        "200",
        "--threads",
        "2",
        "--waiting",
        "3",
        "--invariant",
        "1",
    ]
    no_jinja = "import sys; sys.modules['jinja2.sandbox'] = None; from rushlight.serve.__main__ import main; main()"
    pair = Served([program, *how]), Served([sys.executable, "-c", no_jinja, *how])
    yield pair
    for served in pair:
        assert served.end() == 0


def said(served, path, **body):
    """What an answer says, and of how many tokens it was made."""
    found = served.answer(path, **body)
    choice = found["choices"][0]
    text = choice["text"] if path == COMPLETE else choice["message"]["content"]
    return text, choice["finish_reason"], found["usage"], found["object"]


PROMPTS = [
    "abc",
    "hello  hello\n\n x",
    "it's 1234567 o'clock",
    "naïve 日本語 🙂 ½ ٣",
    "\t!!\r\n a",
    " ",
]


def test_answers_are_those_of_the_python_server(both):
    ours, python = both
    for prompt in PROMPTS:
        body = {"prompt": prompt, "max_tokens": 12, "temperature": 0}
        assert said(ours, COMPLETE, **body) == said(python, COMPLETE, **body)
    for how in (
        {"seed": 1},
        {"seed": 2, "top_k": 5, "top_p": 0.9},
        {"temperature": 0, "stop": ["e", "zz"]},
    ):
        messages = [{"role": "system", "content": "ab"}, {"role": "user", "content": "c</s>"}]
        body = {"messages": messages, "max_tokens": 12, "repetition_penalty": 1.3, **how}
        assert said(ours, CHAT, **body) == said(python, CHAT, **body)


def test_streams_come_to_the_same_text(both):
    for path, body in (
        (COMPLETE, {"prompt": "abc"}),
        (CHAT, {"messages": [{"role": "user", "content": "abc"}]}),
    ):
        body |= {"max_tokens": 9, "temperature": 0}
        text, reason, usage, _ = said(both[0], path, **body)
        status, found = both[0].ask(
            path, body | {"stream": True, "stream_options": {"include_usage": True}}
        )
        assert status == 200 and found.endswith("data: [DONE]\n\n")
        parts = [json.loads(line[6:]) for line in found.split("\n\n")[:-2]]
        choices = [p["choices"][0] for p in parts[:-1]]
        assert (
            "".join(
                c["text"] if path == COMPLETE else c["delta"].get("content", "") for c in choices
            )
            == text
        )
        assert choices[-1]["finish_reason"] == reason and parts[-1]["usage"] == usage


def test_requests_side_by_side_are_as_if_alone(both):
    ours = both[0]
    bodies = [{"prompt": p, "max_tokens": 20, "temperature": 0} for p in PROMPTS * 2]
    alone = [said(ours, COMPLETE, **body) for body in bodies]
    found = [None] * len(bodies)

    def one(i):
        status = 503
        while status == 503:  # the queue is short
            status, text = ours.ask(COMPLETE, bodies[i])
        found[i] = json.loads(text)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [f["choices"][0]["text"] for f in found] == [text for text, *_ in alone]


REFUSED = [
    (COMPLETE, b"{"),
    (COMPLETE, b"[" * 100000),
    (COMPLETE, []),
    (COMPLETE, {}),
    (COMPLETE, {"prompt": [1 << 40]}),
    (COMPLETE, {"prompt": []}),
    (COMPLETE, {"prompt": "a" * 300}),
    (COMPLETE, {"prompt": "a", "temperature": "hot"}),
    (COMPLETE, {"prompt": "a", "temperature": -1}),
    (COMPLETE, {"prompt": "a", "max_tokens": 0}),
    (COMPLETE, {"prompt": "a", "top_p": True}),
    (COMPLETE, {"prompt": "a", "stop": [1]}),
    (COMPLETE, {"prompt": "a", "n": 2}),
    (CHAT, {"messages": []}),
    (CHAT, {"messages": [{"role": "god", "content": ""}]}),
    (CHAT, {"messages": [{"role": "user", "content": [{"image": 1}]}]}),
    (CHAT, {"messages": [{"role": "user", "content": "a"}], "tools": [1]}),
]


def test_what_is_refused_is_refused_by_both(both):
    for path, body in REFUSED:
        for served in both:
            status, text = served.ask(path, body)
            assert status == 400 and json.loads(text)["error"]["type"] == "invalid_request_error", (
                body
            )
    for served in both:
        assert served.ask(COMPLETE, {"prompt": "a"}, **{"Content-Type": "text/plain"})[0] == 400
        assert served.ask("/v1/models", Host="example.com")[0] == 403
        assert served.ask("/else")[0] == 404 and served.ask("/else", {})[0] == 404
        assert json.loads(served.ask("/v1/models")[1])["data"][0]["id"] == "tiny.gguf"


def test_a_client_that_goes_away_ends_its_stream(both):
    ours = both[0]
    body = {"prompt": "abc", "max_tokens": 150, "temperature": 0, "stream": True}
    for _ in range(12):  # more than there are seats and places to wait
        connection = http.client.HTTPConnection(*ours.address, timeout=60)
        connection.request("POST", COMPLETE, json.dumps(body), {"Content-Type": "application/json"})
        connection.getresponse().read(10)
        connection.close()
    status = 503
    while status == 503:
        status, _ = ours.ask(COMPLETE, {"prompt": "abc", "max_tokens": 2})
    assert status == 200


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_while_it_answers(program, tmp_path, sign):
    torch.gguf.save(tmp_path / "tiny.gguf", *KINDS["pieces"]())
    served = Served([program, tmp_path / "tiny.gguf", "--port", "0", "--cache", "int8"])
    connection = http.client.HTTPConnection(*served.address, timeout=60)
    body = json.dumps({"prompt": "abc", "max_tokens": 60, "stream": True})
    connection.request("POST", COMPLETE, body, {"Content-Type": "application/json"})
    assert connection.getresponse().read(6) == b"data: "
    assert served.end(sign) == 0
    connection.close()


def test_files_that_cannot_be_loaded_end_it(program, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    command = [program, tmp_path / "bad.gguf", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "could not be loaded" in done.stderr
    for bad in ([], [tmp_path / "bad.gguf", "--port"], [tmp_path / "bad.gguf", "--cache", "int3"]):
        done = subprocess.run([program, *bad], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "usage:" in done.stderr
