#!/usr/bin/env python3
"""A worker of Takt over plain HTTP, with nothing but the standard library.

    TAKT_SERVER=http://127.0.0.1:7070 python3 worker.py        # pool python, handler sum; Ctrl-C gives its work back

Add functions to HANDLERS: they get a Task, return the result, and call task.check() often."""
import datetime, json, os, signal, socket, threading, time, types, urllib.error, urllib.request, uuid

def clock():  # counts while the machine sleeps, where there is such a clock: a lease goes on running then
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

class Stopped(Exception): pass   # this attempt must do nothing more
class Fatal(Exception): pass     # trying again would not help
class NewSession(Exception): pass  # the server does not know this one any more

class Task:
    def __init__(self, worker, a, deadline):
        self.worker, self.a, self.deadline, self.outcome = worker, a, deadline, None
        self.params, self.checkpointed = a.get("params") or {}, a.get("checkpoint")
        self.shard, self.total, self.key, self.token = a["shard"], a["shardTotal"], a["key"], a["token"]
        self.seq, self.line, self.unsent = 0, 0, []
    def check(self):
        """Ends the handler when its lease has run out, when it is cancelled, and when the worker stops."""
        if clock() >= self.deadline: self.outcome = "lease_lost"
        if self.outcome: raise Stopped()
    def checkpoint(self, value):
        """Durable when it returns: the next attempt finds it in task.checkpointed."""
        self.check()
        self.report("checkpoint", checkpoint=value)
    def report(self, kind, **more):
        self.seq += 1
        item = dict(self.id(), seq=self.seq, kind=kind, **more)
        while True:  # until it is answered
            try:
                fate = self.worker.call("report", {"items": [item]})["items"][0]
            except (OSError, ValueError):
                if clock() >= self.deadline: raise Stopped()  # nothing that is said now would count
                time.sleep(0.2); continue
            if fate != "accepted":
                self.outcome = "lease_lost"; raise Stopped()
            return
    def id(self): return {"execution": self.a["execution"], "shard": self.shard, "token": self.token}
    def log(self, text, final=False):
        if text: self.unsent.append({"at": int(time.time() * 1000), "stream": "log", "text": text})
        try:  # lines have numbers, so a chunk that is sent again writes nothing twice
            fate = self.worker.post("log", {"chunks": [dict(self.id(), offset=self.line, lines=self.unsent, final=final)]})["chunks"][0]
        except (OSError, ValueError): return  # with the next line
        if fate["fate"] == "taken":
            self.line, self.unsent = self.line + len(self.unsent), []

class Worker:
    def __init__(self, server, pool, handlers, slots=2, token=os.environ.get("TAKT_TOKEN")):
        self.server, self.pool, self.handlers, self.slots, self.token = server.rstrip("/"), pool, handlers, slots, token
        self.lock, self.tasks, self.stopping, self.epoch = threading.RLock(), {}, threading.Event(), 0
    def post(self, path, body, timeout=10):
        headers = {"Content-Type": "application/json"}
        if self.token: headers["Authorization"] = "Bearer " + self.token
        request = urllib.request.Request(self.server + "/api/v1/worker/" + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer: return json.load(answer)
        except urllib.error.HTTPError as e:
            problem = json.loads(e.read() or b"{}")
            if problem.get("code") == "session_unknown": raise NewSession()
            if e.code < 500 and e.code != 429: raise RuntimeError(f"{path}: {problem}")  # a fault of this program
            raise
    def call(self, path, body, timeout=10):
        with self.lock:  # calls are numbered, and a lease counts from the instant before its call was sent
            self.number += 1
            body = dict(body, session=self.session, epoch=self.epoch, call=self.number)
            self.sent[self.number] = clock()
            for old in [n for n in self.sent if n < self.number - 1000]: del self.sent[old]
        answer = self.post(path, body, timeout)
        with self.lock:
            if answer["epoch"] < self.epoch: raise ValueError("an answer of a replaced server")
            self.epoch = answer["epoch"]
        return answer
    def now(self): return datetime.datetime.now(datetime.timezone.utc).isoformat()
    def open(self):
        self.number, self.sent = 1, {1: clock()}
        a = self.post("open", {"namespace": "default", "pool": self.pool, "worker": f"{socket.gethostname()}-{os.getpid()}",
            "incarnation": uuid.uuid4().hex, "handlers": list(self.handlers), "slots": self.slots, "localTime": self.now(), "call": 1, "epoch": self.epoch})
        self.session, self.epoch, self.lease = a["session"], a["epoch"], (a["ttlMs"] - a["marginMs"]) / 1000
        self.beat, self.hang = a["beatMs"] / 1000, a["pollMs"]
    def run(self):
        """Works until stopping is set, then gives back what it holds."""
        while not self.stopping.is_set():
            try:
                self.open()
                over = threading.Event()
                beats = threading.Thread(target=self.heartbeats, args=(over,)); beats.start()
                try: self.poll(over)
                finally:
                    self.stop("released" if self.stopping.is_set() else "lease_lost")
                    over.set(); beats.join()
            except (OSError, ValueError, NewSession): self.stopping.wait(0.5)
    def stop(self, why):
        for t in list(self.tasks.values()): t.outcome = t.outcome or why
        while self.tasks: time.sleep(0.02)  # handlers end at their next check
        if self.stopping.is_set(): self.call("close", {})
    def poll(self, over):
        number = 0
        while not self.stopping.is_set() and not over.is_set():
            number += 1
            body = {"number": number, "free": max(self.slots - len(self.tasks), 0), "held": list(self.tasks), "waitMs": min(self.hang, 1000)}
            try: a = self.call("poll", body, timeout=11)
            except (OSError, ValueError): self.stopping.wait(0.2); continue
            for x in a.get("assignments", []):
                if x["token"] not in self.tasks and x["leaseCall"] in self.sent:
                    t = self.tasks[x["token"]] = Task(self, x, self.sent[x["leaseCall"]] + self.lease)
                    threading.Thread(target=self.work, args=(t,)).start()
            self.cancel(a)
    def cancel(self, answer):
        for c in answer.get("cancels", []): self.held(c["token"]).outcome = "cancelled"
    def held(self, token): return self.tasks.get(token, types.SimpleNamespace())  # a task that has just ended does not mind
    def heartbeats(self, over):
        while not over.wait(self.beat):
            try: a = self.call("heartbeat", {"held": [{"token": t} for t in list(self.tasks)], "localTime": self.now()}, timeout=self.beat)
            except NewSession: return over.set()
            except (OSError, ValueError): continue
            for token in a.get("renewed", []): self.held(token).deadline = self.sent[a["call"]] + self.lease
            for token in a.get("lost", []): self.held(token).outcome = "lease_lost"
            self.cancel(a)
    def work(self, t):
        try:
            t.report("started")
            try: end = {"outcome": "success", "result": self.handlers[t.a["handler"]](t)}
            except Stopped: end = {"outcome": t.outcome or "lease_lost"}
            except Exception as e:
                end = {"outcome": "fatal" if isinstance(e, Fatal) else "error", "error": {"class": type(e).__name__, "message": str(e)}}
            t.log("", final=True)
            if end["outcome"] != "lease_lost": t.report("done", **end)
        except (Stopped, NewSession): pass
        finally: del self.tasks[t.token]

def total(task):
    """Adds up what of 0 … n-1 is the shard's share, and remembers how far it is."""
    i, result = task.checkpointed or [task.shard, 0]
    while i < task.params["n"]:
        result, i = result + i, i + task.total
        task.checkpoint([i, result])
    task.log(f"shard {task.shard} of {task.total}: {result}")
    return result

HANDLERS = {"sum": total}

if __name__ == "__main__":
    worker = Worker(os.environ.get("TAKT_SERVER", "http://127.0.0.1:7070"), os.environ.get("TAKT_POOL", "python"), HANDLERS)
    for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, lambda *_: worker.stopping.set())
    worker.run()
