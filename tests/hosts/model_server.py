"""A chat-completions endpoint on loopback that stands in for every model, and keeps what it was
sent.

What it answers is written in the last paragraph of the user's message, between double at-signs:

@@call NAME {json}@@   call a tool; several are called one after another, each in a step of its own
@@say TEXT@@           answer with this text instead of an echo @@more 2000@@          add about so
many letters to the answer @@silent@@             answer with nothing @@fail 400@@           answer
with this HTTP status @@wait 2.5@@           begin to answer after so many seconds @@drip 0.3@@
pause so long between two pieces of the answer @@hold NAME@@          begin to answer when
`release(NAME)` is called @@halt NAME@@          send the first piece of the answer, and the rest
when it is released

Requests without tools (titles, compressions, our own compactor) carry whole conversations in one
message; no order in them is followed. `auxiliary` answers those to the model `aux-model`, and may
raise a `RefusedError`; left alone it writes the lines it is asked for.
"""

import contextlib
import json
import re
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

ORDER = re.compile(r"@@(\w+)\s*(.*?)@@", re.DOTALL)
PIECE_CHARS = 16


class RefusedError(Exception):
    def __init__(self, status, message="refused by the test"):
        super().__init__(message)
        self.status = status


@dataclass
class Exchange:
    """A request, the message it is answered with, and what of its text has gone out.

    `heard` and `taken` are for who puts down what was said.
    """

    body: dict
    message: dict | None = None
    sent: bool = False
    streamed: str = ""
    heard: bool = False
    taken: bool = False


class ModelServer:
    """Serves from `with` to its end. `requests` holds every body, oldest first, `keys` their keys.

    `exchanges` holds each request with its answer. `changed` is notified when a request has come
    in, a piece of an answer is out, or one waits at an order (`reached` has their names). `held`
    has names for the beginnings of questions that are to wait although no order can stand in them.
    """

    def __init__(self):
        self.requests = []
        self.keys = []
        self.auxiliary = line
        self.calls = count(1)
        self.exchanges = []
        self.held = {}
        self.changed = threading.Condition(threading.RLock())
        self.reached, self._released, self._closing = set(), set(), False
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, name="model-server"
        )
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        with self.changed:
            self._closing = True
            self.changed.notify_all()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def chats(self):
        """The requests of conversations: those that offer tools."""
        return [body for body in self.requests if body.get("tools")]

    def for_lines(self):
        """The requests for a line of the memory."""
        return [body for body in self.requests if "<source-text>" in str(body["messages"])]

    def release(self, name):
        with self.changed:
            self._released.add(name)
            self.changed.notify_all()

    def wait_at(self, name):
        """Wait until `name` is released; the host may have hung up long before."""
        with self.changed:
            self.reached.add(name)
            self.changed.notify_all()
            self.changed.wait_for(lambda: name in self._released or self._closing)

    def note(self, exchange, **facts):
        with self.changed:
            vars(exchange).update(facts)
            self.changed.notify_all()

    def reply(self, body):
        """The message a request is answered with; the pause between pieces, or where to halt."""
        if body.get("model") == "aux-model":
            return {"content": self.auxiliary(body)}, 0
        if not body.get("tools"):
            return {"content": line(body)}, 0
        text, steps = question(body["messages"])
        for beginning, name in self.held.items():
            if text.startswith(beginning):
                self.wait_at(name)
        orders = ORDER.findall(text)
        given = {name: value.strip() for name, value in orders}
        if "wait" in given and not steps:
            time.sleep(float(given["wait"]))
        if "hold" in given and not steps:
            self.wait_at(given["hold"])
        if "fail" in given:
            raise RefusedError(int(given["fail"]))
        calls = [value.strip() for name, value in orders if name == "call"]
        if steps < len(calls):
            name, _, arguments = calls[steps].partition(" ")
            return {"content": "", "tool_calls": [self._call(name, arguments or "{}")]}, 0
        answer = (
            ""
            if "silent" in given
            else given.get("say", f"Answer to: {' '.join(ORDER.sub('', text).split())[:80]}")
        )
        answer += " and so on" * (int(given.get("more", 0)) // 10)
        return {"content": answer}, given.get("halt") or float(given.get("drip", 0))

    def _call(self, name, arguments):
        return {
            "id": f"call_{next(self.calls):06d}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }


def line(body):
    """A line as a good model writes it: the beginnings of the texts it is to stand for."""
    texts = re.findall(
        r"<source-text>\n(.*?)\n</source-text>",
        plain(body["messages"][min(1, len(body["messages"]) - 1)]["content"]),
        re.DOTALL,
    )
    return " ".join(text[:200] for text in texts) or "Something was said."


def plain(content):
    """The text of a message's content, also of one in parts."""
    if isinstance(content, str):
        return content
    return "\n\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def question(messages):
    """What the user asked last, without the memory put behind it, and how many tool results have
    come in since.
    """
    last = max(i for i, message in enumerate(messages) if message["role"] == "user")
    text = plain(messages[last]["content"]).partition("<memory-context>")[0].strip()
    # The host may have merged an interrupted message with this one: only the newer part is an
    # order.
    return text.split("\n\n")[-1], sum(message["role"] == "tool" for message in messages[last:])


def memory_blocks(body):
    """The memory blocks in a request, oldest first."""
    texts = (plain(message["content"]) for message in body["messages"])
    return [
        block
        for text in texts
        for block in re.findall(r"<memory-context>(.*?)</memory-context>", text, re.DOTALL)
    ]


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):
            models = [
                {"id": name, "object": "model", "context_length": 200_000}
                for name in ("main-model", "aux-model")
            ]
            self._json(
                {"object": "list", "data": models} if self.path.endswith("/models") else {}, 200
            )

        def do_POST(self):
            body = json.loads(
                self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"
            )
            if not self.path.endswith("/chat/completions"):
                self._json({"error": {"message": f"no such path: {self.path}"}}, 404)
                return
            server.keys.append((self.headers.get("Authorization") or "").removeprefix("Bearer "))
            exchange = Exchange(body)
            with server.changed:
                server.requests.append(body)
                server.exchanges.append(exchange)
                server.changed.notify_all()
            try:
                message, pause = server.reply(body)
                server.note(exchange, message=message)
            except RefusedError as refusal:
                self._json(
                    {"error": {"message": str(refusal), "type": "invalid_request_error"}},
                    refusal.status,
                )
                return
            with contextlib.suppress(
                BrokenPipeError, ConnectionResetError
            ):  # the host hangs up when it is interrupted
                self._stream(exchange, pause) if body.get("stream") else self._whole(exchange)

        def _whole(self, exchange):
            body, message = exchange.body, exchange.message
            server.note(exchange, sent=True)
            choice = {
                "index": 0,
                "message": {"role": "assistant", **message},
                "finish_reason": _reason(message),
            }
            self._json(
                {
                    **_frame(body, "chat.completion"),
                    "choices": [choice],
                    "usage": _usage(body, message),
                },
                200,
            )

        def _stream(self, exchange, pause):
            body, message = exchange.body, exchange.message
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            frame = _frame(body, "chat.completion.chunk")
            self._event({**frame, "choices": [_delta({"role": "assistant"})]})
            for i, call in enumerate(message.get("tool_calls", ())):
                self._event({**frame, "choices": [_delta({"tool_calls": [{"index": i, **call}]})]})
            text = message["content"]
            for start in range(0, len(text), PIECE_CHARS):
                self._event(
                    {**frame, "choices": [_delta({"content": text[start : start + PIECE_CHARS]})]}
                )
                server.note(exchange, streamed=text[: start + PIECE_CHARS])
                self._rest(pause)
            self._event({**frame, "choices": [_delta({}, _reason(message))]})
            self._event({**frame, "choices": [], "usage": _usage(body, message)})
            server.note(exchange, sent=True)
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

        def _rest(self, pause):
            server.wait_at(pause) if isinstance(pause, str) else time.sleep(pause)

        def _event(self, data):
            self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
            self.wfile.flush()

        def _json(self, data, status):
            payload = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

    return Handler


def _frame(body, kind):
    return {
        "id": "chatcmpl-1",
        "object": kind,
        "created": int(time.time()),
        "model": body.get("model"),
    }


def _delta(delta, reason=None):
    return {"index": 0, "delta": delta, "finish_reason": reason}


def _reason(message):
    return "tool_calls" if message.get("tool_calls") else "stop"


def _usage(body, message):
    """What it has cost. Of an answer of nothing a host must be told that: else B 0.22 takes it for
    an accident, and asks again after waits of half a minute.
    """
    sent = len(json.dumps(body.get("messages", []))) // 4
    made = 9 if message["content"] or message.get("tool_calls") else 0
    return {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
