"""Numbers and tables as Markdown."""
import math


def title_of(problem):
    """Names a problem, or anything else with a name, a shape and a bias."""
    return f"{problem.name}: {problem.shape}{', bias' if problem.bias else ''}"


def significant(value, digits=3):
    """The value with so many digits, never in powers of ten: 0.0437, 4.37, 437, 43700."""
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(0, decimals)}f}"


def scaled(value, unit=""):
    """A count: 6.57 M, or 96."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{significant(value / factor)} {prefix}{unit}"
    return f"{value:.0f} {unit}".strip()


def size(value):
    return scaled(value, "B")


def percent(value):
    return significant(value) + " %"


def milliseconds(value):
    return significant(value, 4)


def ratio(value):
    """A quotient; "" for None."""
    return "" if value is None else significant(value)


def markdown(header, rows):
    """Columns of numbers are aligned to the right; those whose cells are all empty go."""
    kept = [i for i in range(len(header)) if i == 0 or any(row[i] for row in rows)]
    lines = [[header[i] for i in kept],
             ["--:" if i > 0 and all(row[i][:1].isdigit() for row in rows if row[i]) else "---"
              for i in kept]]
    lines += [[row[i].replace("|", "\\|") for i in kept] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def aligned(table):
    """Makes a Markdown table one for a terminal: columns are as wide as their widest cell; "" stays ""."""
    rows = [line[2:-2].split(" | ") for line in table.splitlines()]
    if not rows:
        return ""
    right = [cell == "--:" for cell in rows.pop(1)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(right))]
    rows.insert(1, ["-" * width for width in widths])
    lines = ["  ".join(cell.rjust(width) if flush else cell.ljust(width)
                       for cell, width, flush in zip(row, widths, right)) for row in rows]
    return "\n".join(line.rstrip() for line in lines) + "\n"
