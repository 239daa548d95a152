"""The exercises as they lie in the stages' folders, and whether counts meet their goals."""
import ast
import contextlib
import dataclasses
import functools
import glob
import itertools
import json
import math
import operator
import os
import random
import re

from common.show import files, metrics, shape
from common.show.files import ROOT
from common.variants import handin, variants

BEGIN, END = "// ---- your part ----", "// ---- end of your part ----"

COLUMNS = ("n", "c", "h", "w", "k", "r", "s", "stride_h", "stride_w", "pad_h", "pad_w", "dil_h",
           "dil_w", "groups", "bias")
LEAST, MOST = {"pad_h": 0, "pad_w": 0, "bias": 0}, {"bias": 1}
# Every exercise's kernel must be right on these, sizes that are no multiple of anything: first a single
# multiplication, then stride, padding, images, many channels and dilation, one after the other. All have one
# group.
NASTY = ("nasty_all_ones", "nasty_primes", "nasty_stride_remainder", "nasty_pad_beyond_filter",
         "nasty_tiny_planes", "nasty_no_bias", "nasty_long_sums", "nasty_primes_everything")
# And on these, of many filters, large windows, strides and dilations, long rows and long sums; all else is
# small, to take no time.
LARGE = ({"shape": "nasty_s1_r_tall", "n": 1, "c": 1, "h": 36, "w": 2, "k": 40, "stride_h": 7, "dil_h": 3},
         {"shape": "nasty_r1_s_wide", "n": 1, "c": 1, "h": 1, "w": 9, "k": 2},
         {"shape": "nasty_all_ones", "w": 301, "k": 2},
         {"shape": "nasty_all_ones", "c": 1201, "h": 2, "w": 2})

# The names that goals use: sums of metrics, and what Nsight Compute has no metric for.
COUNTERS = metrics.sums() | {name: [name] for name in (
    "blocks", "barriers", "shared_bytes", "tensor_instructions", "launches")}
OF_ATOMICS = metrics.parts_of("reduction_sectors")  # a kernel without such operations has no such metric


def ceil(a, b=1):
    return math.ceil(a / b)


FUNCTIONS = {"ceil": ceil, "min": min, "max": max}
PARTS = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.UAdd,
         ast.USub, ast.Call, ast.Name, ast.Load, ast.Constant)  # of a formula
LONGEST, MOST_ENTRIES = 400, 50  # its characters; of a goal.json
RELATIONS = {"at_most": ("at most", operator.le), "at_least": ("at least", operator.ge),
             "exactly": ("exactly", operator.eq)}
MOST_MACS = 1e9  # of a problem: of larger ones the checker compares a sample (trial.cpp)
# What a goal.json may say, and one of its goals.
KEYS = {"check", "count", "goals", "idea", "like", "next", "place", "points", "predict", "score", "start",
        "think", "time", "timed_start", "vary", "visibility", "watch"}
KINDS = {"goals": [{"name": "..."}], "count": [{"shape": "alexnet_conv1"}], "check": [{"k": 3}],
         "time": [{"shape": "alexnet_conv1"}], "vary": {"k": [20, 40]}, "predict": {"loads": "loads"}}
GOAL_KEYS = {"because", "counter", "kernel", "name", "think", *RELATIONS}
FAILURES = ("unreadable", "does not compile", "refused", "crash", "launch fails", "wrong result", "data race",
            "stray access", "unwritten read", "barrier", "no end", "counters")
VISIBILITIES = ("visible", "hidden", "after_due_date", "after_published")  # Gradescope's


class BadTask(Exception):
    """A goal.json that makes no sense."""


@functools.cache
def parsed(formula):
    """(code, the names in it) of a formula's text. So short a one is worked out at once."""
    said = json.dumps(formula[:60] + "..." * (len(formula) > 60))
    if len(formula) > LONGEST:
        raise BadTask(f"{said}: a formula has {LONGEST} characters at most")
    with contextlib.suppress(MemoryError, RecursionError, SyntaxError, ValueError):  # as if nested too deep
        tree = ast.parse(formula, "goal.json", "eval")
        if all(map(is_part, ast.walk(tree))):
            return compile(tree, "goal.json", "eval"), {
                part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    raise BadTask(f"{said}: a formula has numbers, names, + - * / // and brackets, ceil, min and max")


def is_part(node):
    """Whether a formula may have this."""
    return isinstance(node, PARTS) and not (
        isinstance(node, ast.Constant) and type(node.value) not in (int, float) or
        isinstance(node, ast.Call) and not isinstance(node.func, ast.Name))


def evaluate(formula, names):
    """A formula of +, -, *, /, //, ceil(a, b), min and max over `names`."""
    code, _ = parsed(str(formula))
    try:
        value = eval(code, {"__builtins__": {}, **FUNCTIONS}, names)
        if not isinstance(value, (int, float)):
            raise BadTask(f"'{formula}': is no number")
        return value if math.isfinite(value) else math.nan
    except (ArithmeticError, ValueError):  # divides by zero, or too large
        return math.nan  # meets no goal
    except (NameError, TypeError) as error:
        raise BadTask(f"'{formula}': {error}") from None


def extents(row):
    """What formulas may say of a problem."""
    names = shape.of_row(row)._asdict() | {"bias": int(row["bias"])}
    names["C"], names["K"] = names["C"] // names["groups"], names["K"] // names["groups"]
    names["PQ"], names["CRS"] = names["P"] * names["Q"], names["C"] * names["R"] * names["S"]
    return names


def counters_of(kernels, only=""):
    """{name: sum over the kernels}; without those that one of the kernels lacks."""
    kernels = [kernel for kernel in kernels if only in ("", kernel["kernel"])]
    return {name: sum(kernel.get(metric, 0) for kernel in kernels for metric in parts)
            for name, parts in COUNTERS.items()
            if kernels and any(metric in kernel for kernel in kernels for metric in parts) and
            all(metric in kernel or metric in OF_ATOMICS for kernel in kernels for metric in parts)}


@dataclasses.dataclass
class Result:
    """A goal, and what was counted."""
    name: str
    problem: str
    value: float  # None: nothing was
    relation: str
    bound: float
    think: str
    lacks: bool = False  # Nsight Compute has no such counter

    @property
    def met(self):
        """None where this machine can't tell."""
        if self.lacks:
            return None
        return None not in (self.value, self.bound) and \
            bool(RELATIONS[self.relation][1](self.value, self.bound))

    @property
    def goal(self):
        return f"{RELATIONS[self.relation][0]} {number(self.bound)}"

    @property
    def state(self):
        return {True: "met", False: "missed", None: "needs the simulator"}[self.met]

    @property
    def text(self):
        counted = "nothing was counted" if self.value is None else number(self.value, self.bound)
        return f"{self.name}: {counted}, not {self.goal}, on {self.problem}"


@dataclasses.dataclass
class Task:
    name: str
    folder: str
    goal: dict
    seconds: int = 24  # to be judged in: a right kernel may shuffle six times as often as ours

    @property
    def stage(self):
        return os.path.basename(os.path.dirname(os.path.dirname(self.folder)))

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def text(self, *parts):
        return files.read(self.path(*parts))

    def start(self):
        """The kernel with a gap: start.cu, or the solution of another exercise, changed."""
        if os.path.exists(self.path("start.cu")):
            return self.text("start.cu")
        start, = (each for each in self._variants() if each.kind == "start")
        base = called(start.of)
        text = re.sub(rf"^ *({BEGIN}|{END})\n", "", base.solved(), flags=re.M)
        text = start.apply(text).replace(f'{{"{base.name}"', f'{{"{self.name}"')
        return f"// {start.about}{'' if start.about[-1] == '?' else '.'}\n" + text.partition("\n")[2]

    @property
    def kept(self):
        """(before, gap, after) of the start, where an assertion stands outside of the gap, or a kernel that
        no goal counts: all that must stay. Else empty."""
        if "score" in self.goal:
            return ()
        before, gap, after = split(self.start(), self.name)
        others = handin.launched(before + after) - {goal.get("kernel") for goal in self.goal["goals"]}
        counts_all = any("kernel" not in goal for goal in self.goal["goals"])
        return (before, gap, after) if "static_assert" in before + after or others and not counts_all else ()

    def solved(self):
        """The start with the gap filled in by our solution."""
        before, _, after = split(self.start(), self.name)
        return before + self.text("solution.cu") + after

    def variants(self):
        """What the judge must tell apart: the start, the solution, and its mistakes."""
        for name, about, expect in (("start", "what the learner begins with", self.goal["start"]),
                                    ("solution", "ours", "")):
            yield variants.Variant(self.folder, "mistake", self.name, name, about, expect)
        yield from (each for each in self._variants() if each.kind == "mistake")

    def _variants(self):
        return variants.read(self.path("exercise.variant"), self.name)

    def hints(self):
        """The texts under the headings of hints.md."""
        text = files.read_existing(self.path("hints.md"))
        return [part.strip() for part in re.split(r"^## .*$", text, flags=re.M)[1:]]

    def checked(self):
        """Problems on which the kernel must be right."""
        known = problems()
        return {name: known[name] for name in NASTY} | _rows_of([*LARGE, *self.goal.get("check", [])])

    def counted(self):
        return _rows_of(self.goal["count"])

    def timed(self):
        return _rows_of(self.goal.get("time", []))

    def varied(self, seed):
        """The first problem that is counted, with other extents: no kernel can be made for its sizes alone.
        What they may be: `vary`, {column: [least, most]}."""
        draw, first = random.Random(seed), self.goal["count"][0]
        drawn = {column: draw.randint(*span) for column, span in self.goal.get("vary", {}).items()}
        return _rows_of([first | drawn]) if drawn else {}

    def results(self, counted, rows=None, on_gpu=False):
        """[Result] for {problem: [kernel's record]} of the problems in `rows`. A GPU has no counter for
        some."""
        results = []
        for problem, row in (rows or self.counted()).items():
            for goal in self.goal["goals"]:
                counters = counters_of(counted.get(problem, []), goal.get("kernel", ""))
                names = extents(row) | counters
                relation = next((key for key in RELATIONS if key in goal), None)
                if relation is None:
                    raise BadTask(f"{self.name}: a goal needs one of {', '.join(RELATIONS)}")
                value, bound = (None if missing(formula, names) else evaluate(formula, names)
                                for formula in (goal["counter"], goal[relation]))
                lacking = value is None or bound is None
                think = goal["think"]
                if lacking and counters:
                    think = f"The kernel has run, and nothing of it counts as this. {think}"
                elif lacking:
                    think = "Nothing was counted: has " + (
                        f"a kernel called {goal['kernel']} run?" if "kernel" in goal else "a kernel run?")
                results.append(Result(goal["name"], problem, value, relation, bound, think,
                                      lacking and on_gpu and bool(counters)))
        return results

    def strangers(self, counted):
        """The kernels that have run, and are neither the start's nor the solution's: no goal counts them."""
        has_solution = os.path.exists(self.path("solution.cu"))  # a teacher's own may have none
        texts = self.start() + (self.solved() if has_solution else "")
        known = handin.launched(texts) | {
            each for each in handin.BEHIND if each.removesuffix("_kernel") + "(" in texts}
        return sorted({kernel["kernel"] for kernels in counted.values() for kernel in kernels} - known)

    def score(self, counted):
        """What is added up over the problems, where that is the aim; None where no kernel was counted."""
        counters = [counters_of(kernels) for kernels in counted.values()]
        total = sum(evaluate(self.goal["score"], each) for each in counters) if all(counters) else math.nan
        return int(total) if math.isfinite(total) else None

    def predictable(self, counted):
        """What --predict may name, as counted on the first problem, of the first goal's kernel."""
        problem, row = next(iter(self.counted().items()))
        kernel = self.goal["goals"][0].get("kernel", "") if self.goal["goals"] else ""
        names = extents(row) | counters_of(counted.get(problem, []), kernel)
        return {key: evaluate(formula, names) for key, formula in self.goal["predict"].items()
                if not missing(formula, names)}


@functools.cache
def problems():
    """common/problems.csv: {name: {column: text}}."""
    return {row["name"]: {column: row[column] for column in COLUMNS}
            for row in files.read_rows(os.path.join(ROOT, "common/problems.csv"))}


def _rows_of(entries):
    """{name: problem} of shapes of common/problems.csv with other extents."""
    known, rows = problems(), {}
    for entry in entries:
        overrides = {column: value for column, value in entry.items() if column != "shape"}
        name = "_".join([entry["shape"]] + [f"{column}{value}" for column, value in overrides.items()])
        rows[name] = {**known[entry["shape"]], **overrides}
    return rows


def missing(formula, names):
    """Counters that the formula needs, and `names` has not."""
    used = parsed(str(formula))[1] - set(names) - set(FUNCTIONS)
    if used - set(COUNTERS):
        raise BadTask(f"'{formula}': what is {', '.join(sorted(used - set(COUNTERS)))}?")
    return used


def number(value, bound=None):
    """550000 -> '550,000', 8.7843 -> '8.784'; of what isn't the bound as many digits as show that."""
    if value is None or isinstance(value, float) and not math.isfinite(value):
        return "-"
    text = f"{value:,.0f}" if value == int(value) or abs(value) >= 1e4 else f"{value:.4g}"
    return f"{value:,.10g}" if bound not in (None, value) and text == number(bound) else text


@functools.cache
def read_all():
    """All exercises, in the order in which they are meant to be done."""
    found = map(_read, glob.glob(os.path.join(glob.escape(ROOT), "[0-9][0-9]_*/exercises/*/goal.json")))
    return sorted(found, key=lambda task: (task.stage, task.goal["place"]))


@functools.cache
def golf():
    """The open one, without an end."""
    return _read(os.path.join(variants.FOLDER, "golf/goal.json"), 120)


def called(name):
    return next(task for task in [*read_all(), golf()] if task.name == name)


def read_folder(folder):
    """A teacher's own: those whose goal.json says which of ours they are `like` have only what differs."""
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*/goal.json"))):
        try:
            task = _read(path)
            if "like" in task.goal:
                for name in ("start.cu", "exercise.variant", "solution.cu", "hints.md"):
                    if os.path.exists(task.path(name)):
                        raise ValueError(f'it is "like" another, which has its own {name}: leave out one')
                like = next((each for each in [*read_all(), golf()] if each.name == task.goal["like"]), None)
                if not like:
                    raise ValueError(f'"like": there is no exercise called {json.dumps(task.goal["like"])}')
                task = dataclasses.replace(like, name=task.name, goal=like.goal | task.goal)
            if len(task.name) > 60:  # files are called like it
                raise ValueError("its folder's name has more than 60 letters")
            _try(task)
            found.append(task)
        except variants.BadVariant as error:
            raise BadTask(str(error)) from None
        except BadTask as error:
            raise BadTask(f"{path}: {in_a_line(str(error).removeprefix(f'{path}: '))}") from None
        except (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RecursionError,
                StopIteration, SyntaxError, TypeError, ValueError) as error:
            kind = "" if isinstance(error, ValueError) else "nothing is called " if isinstance(
                error, KeyError) else f"{type(error).__name__}: "
            raise BadTask(f"{path}: {kind}{in_a_line(str(error))}") from None
    return found


def in_a_line(text):
    """What may repeat a teacher's own words, of any length."""
    return " ".join(text.split())[:300]


def _try(task):
    """Uses all that goal.json and the texts beside it say, before anybody is judged by it."""
    goal, spans = task.goal, task.goal.get("vary", {})
    _try_texts(task)
    if lacking := [key for key in ("goals", "count", "start", "predict", "idea", "next") if key not in goal]:
        raise ValueError(f'"{lacking[0]}" is missing')
    for name, example in KINDS.items():
        if not isinstance(goal.get(name, example), type(example)):
            raise ValueError(f'"{name}" must be {json.dumps(example)} or the like')
    for each in [*goal["goals"], *goal["count"], *goal.get("check", []), *goal.get("time", [])]:
        if not isinstance(each, dict):
            raise ValueError(f"{json.dumps(each)} stands where {{ ... }} should")
    if sum(len(goal.get(name, ())) for name in ("goals", "count", "check", "time", "predict")) > MOST_ENTRIES:
        raise ValueError(f"more than {MOST_ENTRIES} goals, problems and predictions")
    if not (goal["goals"] or "score" in goal) or not goal["count"]:
        raise ValueError("there must be goals, and problems to count")
    if len(spans) > 6:
        raise ValueError('"vary" has more than six extents')
    for name, ends in spans.items():
        if not isinstance(ends, list) or [type(end) for end in ends] != [int, int] or ends[0] > ends[1]:
            raise ValueError(f'"{name}": two numbers, the least and the most, vary it')
    strange = {*goal} - KEYS | {key for each in goal["goals"] for key in {*each} - GOAL_KEYS}
    if strange:
        raise ValueError(f"what is {', '.join(sorted(strange))}?")
    for place, each in enumerate(goal["goals"], 1):
        if lacking := [key for key in ("name", "counter", "think") if not isinstance(each.get(key), str)]:
            raise ValueError(f"goal {place} has no {lacking[0]}")
        if each.get("kernel", "") not in ("", *handin.launched(task.start())):
            raise ValueError(f'"{each["name"]}": {json.dumps(each["kernel"])} is no kernel of the start')
        if any(type(each[key]) not in (str, int, float) or each[key] in (math.inf, -math.inf)
               for key in RELATIONS if key in each):
            raise ValueError(f'"{each["name"]}": a bound is a number, or a formula')
        if len({*each} & {*RELATIONS}) != 1:
            raise ValueError(f'"{each["name"]}": a goal needs one of {", ".join(RELATIONS)}, and one alone')
    if len({each["name"] for each in goal["goals"]}) < len(goal["goals"]):
        raise ValueError("two goals have one name")
    if lacking := [key for key in ("idea", "next", "start") if not isinstance(goal[key], str)]:
        raise ValueError(f'"{lacking[0]}" must be a text')
    drawn = [goal["count"][0] | dict(zip(spans, some)) for some in itertools.product(*(
        {least, (least + most) // 2, most} for least, most in spans.values()))]
    for entry in [*goal.get("check", []), *goal["count"], *goal.get("time", []), *drawn]:
        if entry.get("shape") not in [*problems()]:
            raise ValueError(f"{json.dumps(entry)} has no \"shape\" that common/problems.csv has")
        for column, value in entry.items():
            if column != "shape" and (column not in COLUMNS or type(value) is not int or not
                                      LEAST.get(column, 1) <= value <= MOST.get(column, 1 << 20)):
                raise ValueError(f'"{column}": {json.dumps(value)} is in no problem')
    rows = _rows_of(drawn)  # of their ends
    groups, c, k = (range(min(of), max(of) + 1) for of in (
        [int(row[name]) for row in rows.values()] for name in ("groups", "c", "k")))
    if any(each % g for g in groups for of in (c, k) for each in of):
        raise ValueError('"vary" draws groups that don\'t divide c and k')
    for last in drawn:
        rows = task.checked() | task.counted() | _rows_of([last])
        if sum(_work(problem, row) for problem, row in rows.items()) > task.seconds << 24:
            raise ValueError(f"a kernel would not be done with these problems in {task.seconds} seconds")
        if max(_work(problem, row) for problem, row in rows.items()) > MOST_MACS:
            raise ValueError("a problem is so large that not every output would be compared")
    metrics = {metric: number for number, metric in enumerate(
        sorted({metric for names in COUNTERS.values() for metric in names}), 2)}  # no two alike
    rows = task.counted() | task.varied(1)
    for each in goal["goals"]:
        kernel = {**metrics, "kernel": each.get("kernel", "")}
        for result in task.results({problem: [kernel] for problem in rows}, rows):
            if result.value is not None and math.isnan(result.value):
                raise ValueError(f'"{result.name}": its counter is no number on {result.problem}')
            if result.bound is not None and math.isnan(result.bound):
                raise ValueError(f'"{result.name}": its bound is no number on {result.problem}')
    task.predictable({})
    think = goal.get("think", {})
    if not isinstance(think, dict) or not all(isinstance(text, str) for text in think.values()):
        raise ValueError('"think" must have a text for each kind of failure')
    if strange := {key.partition(": ")[0] for key in think} - {*FAILURES} | {goal["start"]} - {*FAILURES, ""}:
        raise ValueError(f"{json.dumps(min(strange))} is no kind of failure: {', '.join(FAILURES)}")
    if goal.get("watch", "global") not in ("global", "shared"):
        raise ValueError('"watch" must be "global" or "shared"')
    if "score" in goal and math.isnan(evaluate(goal["score"], counters_of([{**metrics, "kernel": ""}]))):
        raise ValueError('"score" is no number')
    points = goal.get("points", 0)
    if type(points) not in (int, float) or not 0 <= points <= 1e6 or not task.start():
        raise ValueError("points must be a number from 0 to 1,000,000")
    if goal.get("visibility", "visible") not in VISIBILITIES:
        raise ValueError(f"visibility must be one of {', '.join(VISIBILITIES)}")


def _try_texts(task):
    for name in ("start.cu", "exercise.variant", "solution.cu", "hints.md"):
        try:
            files.read_existing(task.path(name))
        except UnicodeDecodeError:
            raise ValueError(f"beside it {name} is not in UTF-8") from None
    has_variants, has_start = (os.path.exists(task.path(name)) for name in ("exercise.variant", "start.cu"))
    changed = task._variants() if has_variants else []
    if has_start and any(each.kind == "start" for each in changed):
        raise ValueError("beside it start.cu and exercise.variant have a start each")
    if BEGIN in files.read_existing(task.path("solution.cu")):
        raise ValueError("solution.cu must hold what stands in the gap alone")
    if files.read_existing(task.path("hints.md")).strip() and not task.hints():
        raise ValueError("hints.md has no heading '## ...', under which a hint would stand")
    if not has_start:
        starts = [each for each in changed if each.kind == "start"]
        if len(starts) != 1:
            raise ValueError("beside it there must be a start.cu, or an exercise.variant with one start")
        if starts[0].of not in (each.name for each in read_all()):
            raise ValueError(f"exercise.variant: there is no exercise '{starts[0].of}' to start from")
        if not starts[0].about.strip():
            raise ValueError("exercise.variant: the start needs a text behind its name")
    if "score" not in task.goal:
        split(task.start(), "its start")
    for each in changed if os.path.exists(task.path("solution.cu")) else ():
        if each.kind == "mistake":
            each.apply(task.solved())


def _work(problem, row):
    """Multiplications, and elements of the tensors."""
    e = extents(row)
    groups = e["groups"]
    if min(e[name] for name in ("N", "C", "K", "P", "Q")) < 1 or int(row["c"]) % groups or \
            int(row["k"]) % groups:
        raise ValueError(f"{problem} has no outputs, or groups that don't divide c and k")
    return groups * (e["N"] * e["K"] * e["PQ"] * (e["CRS"] + 1) + e["N"] * e["C"] * e["H"] * e["W"] +
                     e["K"] * e["CRS"])


def _object(pairs):
    """A dictionary whose keys stand once each: of two, one would be lost."""
    found = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{json.dumps(key)} stands twice")
        found[key] = value
    return found


def _read(path, *seconds):
    folder = os.path.dirname(path)
    try:
        goal = json.loads(files.read(path), object_pairs_hook=_object)
        if not isinstance(goal, dict):
            raise ValueError("is no object, { ... }")
        return Task(os.path.basename(folder), folder, goal, *seconds)
    except ValueError as error:
        raise BadTask(f"{path}: {error}") from None


def split(text, path):
    """A kernel's source as (before the gap, the gap, after it)."""
    lines = text.splitlines(keepends=True)
    marks = [[i for i, line in enumerate(lines) if line.strip() == mark] for mark in (BEGIN, END)]
    if [len(mark) for mark in marks] != [1, 1] or marks[0][0] > marks[1][0]:
        raise BadTask(f"{path}: needs one line '{BEGIN}', and after it one '{END}'")
    first, last = marks[0][0] + 1, marks[1][0]
    return "".join(lines[:first]), "".join(lines[first:last]), "".join(lines[last:])
