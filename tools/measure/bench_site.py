"""Time what readers and authors wait for: figures, translations, verdicts, a build.

    python -m tools.measure.bench site [--record] [--no-rebuild]

Needs the built site and Chromium. What is counted:

- A figure: from the moment that the browser is given a key, or a step of a drag, until
  the first frame in which the figure shows other numbers: its handlers, and the
  browser's style, layout and painting. Waiting for the screen, up to 17 ms, is in it;
  what the compositor then does is not. Every control that a key can move is moved, to
  its ends too. A move that changes no number is no answer, and is not counted.
- A token: written and drawn by the language model of the map.
- A translation: twelve words in the loaded translator, from the key to the frame that
  shows all of the answer. The whole browser has one core. The first one, which finds
  the model cold, is the figure's own time, from asking to answer.
- A verdict: from opening an exercise page, with nothing in the browser's cache, to what
  the check says of the first edit, done as soon as the page lets one; then from the
  button to the verdict on later edits. The whole browser has one core, this machine
  serves. The bytes are those of all that is loaded for it, compressed.
- A build: `tools/site/book.py`, after a page has got one sentence more.

Fails if something takes longer than MUST. What other work of the machine may have
slowed is measured up to twice more, and the best counts. --record writes
results/site/bench.json.
"""

import argparse
import contextlib
import functools
import gzip
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from autograder.exercise.chapters import exercises
from tools import browser, provenance
from tools.steps import ROOT

SITE = ROOT / "_build" / "html"
RECORD = ROOT / "results" / "site" / "bench.json"
MUST = {"figure_ms": 50, "translation_ms": 500, "token_ms": 60, "rebuild_s": 20}
AIM = {"figure_ms": 16, "translation_ms": 150, "token_ms": 20, "rebuild_s": 5}
MUST |= {"verdict_first_s": 10, "verdict_s": 1, "runtime_bytes": 8_000_000}
AIM |= {"verdict_first_s": 5, "verdict_s": 0.3, "runtime_bytes": 5_000_000}
LIMIT = MUST["figure_ms"]
DESK = {"width": 1440, "height": 900}

DIRECTIVE = re.compile(r"^`{3,}\{moving-figure\}\s+(\w+)", re.MULTILINE)
LEAST_MOVES = 20
ALONG = ["ArrowRight"] * 3 + ["End"] + ["ArrowLeft"] * 3 + ["Home"]
ACROSS = ["ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"]
KEYS = {  # control -> the event that moves it, and the keys
    "input[type=range]": ("keydown", ALONG),
    "select": ("keydown", ALONG),
    "input[type=radio]:checked": ("keydown", ["ArrowDown"] * 6),
    "input[type=checkbox]": ("keyup", ["Space"] * 4),
    "input:not([type]), input[type=text], textarea": (
        "keydown",
        ["a", "b", "Backspace", "Backspace"],
    ),
    ".figure-handle": ("keydown", ACROSS),
    ".rollout-grid button": ("keydown", ACROSS),
}
DRAGGED = ".figure-handle, .live-pad, [data-figure=residual_stream] .figure-drawing"
STEPS = [(9, -30), (30, 20), (9, -30), (-25, -40), (-40, 20), (17, 60)]  # of a drag

NAME = """(control) => (control.ariaLabel || control.labels?.[0]?.innerText
  || control.textContent).trim().slice(0, 40)"""

# A frame's message comes after its painting. After 20 frames, or 9 s, nobody waits.
WATCH = """(figure, [kind, arrived, frames]) => {
  const shown = () => figure.figure.numbers();
  const before = shown(), told = JSON.stringify(before);
  const { port1, port2 } = new MessageChannel();
  window.answer = new Promise((done) => {
    setTimeout(done, 9000, null);
    addEventListener(kind, (event) => {
      const look = () => requestAnimationFrame(() => port2.postMessage(0));
      port1.onmessage = () => {
        const took = performance.now() - event.timeStamp;
        const now = shown();
        if (arrived === "changed" ? JSON.stringify(now) !== told
          : now.milliseconds && now.milliseconds !== before.milliseconds) done(took);
        else if ((frames -= 1) > 0) look();
        else done(null);
      };
      look();
    }, { capture: true, once: true });
  });
}"""

SENTENCE = "Anna says that the clever princes do not dance in the room."
GERMAN = "Anna sagt, dass die klugen Prinzen nicht im Zimmer tanzen."
TRANSLATIONS = 10
EXERCISE = "exercises/01_embeddings/01_embeddings.html"
NUMBER = exercises()["vocabulary"].number
ANSWER = """def build_vocabulary(tokens, special_tokens=("<pad>",)):
    print("edit NUMBER.")
    return {token: i for i, token in enumerate(sorted({*special_tokens, *tokens}))}
"""
WRONG = "alphabetical order"  # what the check says of it
EDITS = 6
EDITED = ROOT / "book" / "04_attention.md"
ADDED = "This sentence is here for a moment, to time how long a build takes."


# --- figures --------------------------------------------------------------------------


def pages_of_figures() -> dict[str, str]:
    """Find every figure that moves, in the pages' sources: name -> page of the site."""
    return {
        name: source.relative_to(ROOT).with_suffix(".html").as_posix()
        for source in sorted((ROOT / "book").rglob("*.md"))
        for name in DIRECTIVE.findall(source.read_text("utf-8"))
    }


def opened(page, address: str, name: str):
    """Open a figure's page, bring the figure into view; give its locator."""
    page.goto(address + pages_of_figures()[name], wait_until="load")
    figure = page.locator(f"figure[data-figure={name}]")
    figure.scroll_into_view_if_needed()
    page.locator(f"figure[data-figure={name}][data-state=ready]").wait_for()
    page.wait_for_timeout(500)  # sections around it are laid out
    model = figure.get_by_role("button", name=re.compile("^Open the "))
    if model.count():  # there is little to move before it is there
        model.click()
        model.wait_for(state="hidden")
    return figure


def watched(figure, kind: str, move, arrived: str = "changed", frames: int = 20):
    """Make a move; give the milliseconds to the figure's answer, None without one."""
    figure.evaluate(WATCH, [kind, arrived, frames])
    move()
    return figure.page.evaluate("window.answer")


def moved(page, address: str, name: str) -> list[tuple[float, str]]:
    """Move all controls of a figure, again if those are few: how soon, and where."""
    figure, answered = opened(page, address, name), []
    for _ in range(3):
        moves = [*by_key(figure), *by_drag(figure)]
        answered += [(took, move) for move, took in moves if took is not None]
        if len(answered) >= LEAST_MOVES:
            return answered
    sys.exit(f"{name}: only {len(answered)} moves were answered")


def by_key(figure) -> Iterator[tuple[str, float | None]]:
    """Press the keys of each control that is seen."""
    for controls, (kind, keys) in KEYS.items():
        found = figure.locator(controls).locator("visible=true")
        for place in range(min(found.count(), 8)):
            for key in keys:
                if found.count() <= place:  # a move before has taken it away
                    break
                control = found.nth(place)
                control.focus()
                name = control.evaluate(NAME)
                yield f"{name}, {key}", watched(figure, kind, presses(figure, key))


def presses(figure, key: str):
    """Give the move that presses a key."""
    return lambda: figure.page.keyboard.press(key)


def by_drag(figure) -> Iterator[tuple[str, float | None]]:
    """Drag what can be dragged, here and there."""
    mouse, found = figure.page.mouse, figure.locator(DRAGGED).locator("visible=true")
    for place in range(found.count()):
        found.nth(place).scroll_into_view_if_needed()
        name, box = found.nth(place).evaluate(NAME), found.nth(place).bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        mouse.move(x, y)
        mouse.down()
        for right, down in STEPS:
            x, y = x + right, y + down
            move = functools.partial(mouse.move, x, y)
            yield f"{name}, dragged", watched(figure, "pointermove", move)
        mouse.up()


def figures(page, address: str) -> dict[str, dict]:
    """Measure every figure, and show a line of each."""
    print(f"{'figure':16} {'moves':>5} {'median':>10} {'worst':>10}")
    found = {}
    for name, path in pages_of_figures().items():
        runs = []
        while len(runs) < 3 and not any(run["worst_ms"] <= LIMIT for run in runs):
            runs.append(summed_up(moved(page, address, name)))
        best = min(runs, key=lambda run: run["worst_ms"])
        found[name] = {"page": path, **best, "runs": len(runs)}
        print(
            f"{name:16} {best['moves']:5} {best['median_ms']:7.1f} ms "
            f"{best['worst_ms']:7.1f} ms  {best['worst_at']}",
            flush=True,
        )
    return found


def summed_up(answered: list[tuple[float, str]]) -> dict:
    """Give what is recorded of a figure's moves."""
    took = [milliseconds for milliseconds, _ in answered]
    return {"moves": len(took), **middle(took), "worst_at": max(answered)[1]}


def middle(values: list[float]) -> dict[str, float]:
    """Give the median and the worst, in milliseconds."""
    median = statistics.median(values)
    return {"median_ms": round(median, 1), "worst_ms": round(max(values), 1)}


# --- a live translation ---------------------------------------------------------------


@contextlib.contextmanager
def one_core():
    """Leave one core to what is started here, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def translation(page, address: str) -> dict:
    """Load the translator with a sentence, then translate it again and again."""
    figure = opened(page, address, "translate")
    field = figure.locator("#translate-english")
    field.evaluate("(field, text) => { field.value = text; }", SENTENCE)
    figure.get_by_role("button", name="Load the model").click()
    page.wait_for_function(
        "document.querySelector('[data-figure=translate]').figure.numbers()"
        ".milliseconds",
        timeout=120_000,
    )
    first = figure.evaluate("(figure) => figure.figure.numbers()")
    field.focus()
    press = presses(figure, "Enter")
    took = [
        watched(figure, "keydown", press, "translated", 999)
        for _ in range(TRANSLATIONS)
    ]
    if None in took or first["translation"] != GERMAN:
        sys.exit(f"not translated: {first['translation']!r}, {took}")
    found = {"sentence": SENTENCE, "german": GERMAN, "times": len(took)}
    found |= {"first_ms": round(first["milliseconds"], 1), **middle(took)}
    print(
        f"\ntranslation, 12 words, one core: the first {found['first_ms']:.0f} ms; of "
        f"{len(took)} more, median {found['median_ms']:.0f} ms, worst "
        f"{found['worst_ms']:.0f} ms",
        flush=True,
    )
    return found


# --- a text ---------------------------------------------------------------------------

# Gather how long each token took that the language model writes, as the figure says it
TOKENS = """(figure, wanted) => new Promise((resolve) => {
  const found = [];
  const end = performance.now() + 30000;
  let last = figure.figure.numbers().milliseconds;
  const look = () => {
    const now = figure.figure.numbers().milliseconds;
    if (now !== last) found.push(now);
    last = now;
    if (found.length >= wanted || performance.now() > end) resolve(found);
    else requestAnimationFrame(look);
  };
  [...figure.querySelectorAll("button")]
    .find((each) => each.textContent === "Write on").click();
  requestAnimationFrame(look);
})"""
WRITTEN = 20  # tokens of the 24 that a press of the button writes


def writing(page, address: str) -> dict:
    """Let the language model of the map write, its drawings included."""
    figure = opened(page, address, "look_inside")
    page.get_by_role("radio", name="language model").check()
    button = page.get_by_role("button", name="Open the language model")
    if button.count():
        button.click()
        button.wait_for(state="hidden")
    page.wait_for_timeout(1000)
    took = figure.evaluate(TOKENS, WRITTEN)
    if len(took) < WRITTEN:
        sys.exit(f"only {len(took)} tokens were written")
    found = {"times": len(took), **middle(took)}
    print(
        f"writing, a token and its drawings, one core: median {found['median_ms']:.0f} "
        f"ms, worst {found['worst_ms']:.0f} ms of {len(took)}",
        flush=True,
    )
    return found


# --- a verdict ------------------------------------------------------------------------


def verdict(chromium, address: str) -> dict:
    """Answer an exercise on its page, in a browser that has loaded nothing."""
    runs = []
    while len(runs) < 3 and not any(map(is_soon, runs)):
        context = chromium.new_context(viewport=DESK)
        runs.append(answered_on(context.new_page(), address))
        context.close()
    found = min(runs, key=lambda run: run["first_s"]) | {"runs": len(runs)}
    megabytes = sum(found["bytes"].values()) / 1e6
    print(
        f"\nverdict on the first edit, one core: {found['first_s']:.1f} s after "
        f"opening the page; of {found['times']} more, median {found['median_s']} s, "
        f"worst {found['worst_s']} s; {megabytes:.1f} MB loaded",
        flush=True,
    )
    return found


def is_soon(run: dict) -> bool:
    """Tell whether a run took no longer than it may."""
    first, later = MUST["verdict_first_s"], MUST["verdict_s"]
    return run["first_s"] <= first and run["worst_s"] <= later


def answered_on(page, address: str) -> dict:
    """Open the page, edit, check, and edit again."""
    place = page.locator(f".on-page[data-number='{NUMBER}']")
    editor, check = (
        place.get_by_role("textbox"),
        place.get_by_role("button", name="Check", exact=True),
    )
    page.set_default_timeout(120_000)
    took = []
    for edit in range(EDITS):
        began = time.perf_counter()
        if edit == 0:
            page.goto(address + EXERCISE, wait_until="commit")
            place.locator(".on-page-main").click()
        editor.click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(ANSWER.replace("NUMBER", str(edit)))
        began = time.perf_counter() if edit else began
        check.click()
        said = place.locator(".on-page-result").filter(has_text=f"edit {edit}.")
        said.filter(has_text=WRONG).wait_for()
        took.append(time.perf_counter() - began)
    first, *later = took
    found = {"page": EXERCISE, "number": NUMBER, "first_s": round(first, 2)}
    found |= {"times": len(later), "median_s": round(statistics.median(later), 2)}
    found |= {"worst_s": round(max(later), 2)}
    return found | {"bytes": loaded_bytes(page, address)}


def loaded_bytes(page, address: str) -> dict[str, int]:
    """Give what an exercise has loaded, as servers send it: name -> bytes."""
    names = page.evaluate(
        "performance.getEntriesByType('resource').map(({ name }) => name)"
    )
    paths = {name.removeprefix(address).partition("?")[0] for name in names}
    return {
        Path(path).name: len(gzip.compress((SITE / path).read_bytes()))
        for path in sorted(paths)
        if "/on_page/" in path
    }


# --- a build --------------------------------------------------------------------------


def rebuild() -> dict:
    """Build after a page was edited; the page is restored, whatever happens."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    text = EDITED.read_bytes()
    build()  # all else is up to date then
    try:
        EDITED.write_bytes(text + f"\n{ADDED}\n".encode())
        seconds = build()
        if ADDED not in (SITE / "book" / "04_attention.html").read_text("utf-8"):
            sys.exit("the build has not taken up what was edited")
    finally:
        EDITED.write_bytes(text)
        build()
    name = EDITED.relative_to(ROOT).as_posix()
    print(f"\none edited page, {name}, is built in {seconds:.1f} s", flush=True)
    return {"page": name, "seconds": round(seconds, 1)}


def build() -> float:
    """Run tools/site/book.py; give its seconds."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "tools.site.book"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"tools/site/book.py failed:\n{(ran.stdout + ran.stderr)[-2000:]}")
    return time.perf_counter() - began


# --- all ------------------------------------------------------------------------------


def too_slow(found: dict) -> list[str]:
    """Name what takes longer than it may."""
    limits = dict.fromkeys(found["figures"], MUST["figure_ms"])
    limits["translation"] = MUST["translation_ms"]
    limits["writing"] = MUST["token_ms"]
    live = {name: found[name] for name in ("translation", "writing")}
    measured = found["figures"] | live
    slow = [
        f"{name}: {kind} {measured[name][kind]}"
        for name, limit in limits.items()
        for kind in ("first_ms", "median_ms", "worst_ms")
        if measured[name].get(kind, 0) > limit
    ]
    about = found["verdict"]
    for name, most in (("first_s", "verdict_first_s"), ("worst_s", "verdict_s")):
        if about[name] > MUST[most]:
            slow.append(f"verdict: {name} {about[name]}")
    if sum(about["bytes"].values()) > MUST["runtime_bytes"]:
        slow.append(f"verdict: {sum(about['bytes'].values())} bytes")
    if found["rebuild"] and found["rebuild"]["seconds"] > MUST["rebuild_s"]:
        slow.append(f"rebuild: {found['rebuild']['seconds']} s")
    return slow


def main(arguments: argparse.Namespace) -> None:
    """Measure, record if asked, and fail if something is too slow."""
    if not (SITE / "index.html").is_file():
        sys.exit(f"no site at {SITE}: run `make book` first")
    command = "python -m tools.measure.bench site --record"
    made_by = provenance.made_by(command + " --no-rebuild" * arguments.no_rebuild)
    with browser.served(SITE) as address:
        with browser.launched() as chromium:
            made_by["chromium"] = chromium.version
            found = {"figures": figures(chromium.new_page(viewport=DESK), address)}
        with one_core(), browser.launched() as chromium:
            page = chromium.new_page(viewport=DESK)
            found["translation"] = translation(page, address)
            found["writing"] = writing(page, address)
        with one_core(), browser.launched() as chromium:
            found["verdict"] = verdict(chromium, address)
    found["rebuild"] = None if arguments.no_rebuild else rebuild()
    if arguments.record:
        content = made_by | {"must": MUST, "aim": AIM} | found
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(
            json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
    if slow := too_slow(found):
        sys.exit("too slow: " + "; ".join(slow))
